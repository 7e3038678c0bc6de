package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/flagsource"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/cleanup"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/deleting"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/generating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/suite/document"
)

var update = flag.Bool("update", false, "write generated documentation and golden files anew")

// TestCommandLineDocumentation keeps docs/cli.md as the commands describe
// themselves: go test ./cmd/quaymaster -run Documentation -update
func TestCommandLineDocumentation(t *testing.T) {
	const path = "../../docs/cli.md"
	got := commandLineDocumentation()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not as the commands describe themselves; run this test with -update", path)
	}
}

func commandLineDocumentation() string {
	var harmless []string
	for _, name := range flagsource.Harmless() {
		harmless = append(harmless, "`--"+name+"`")
	}
	var b strings.Builder
	b.WriteString(`# Command line

Generated from the commands; flags, formats and exit statuses are a contract.

| exit status | meaning |
|---|---|
| 0 | every image may run; a failure under audit, or admitted by a policy's failure setting, is a warning |
| 1 | an image is denied; or, with no denial and no error, no policy matches one under ` + "`--require-match`" + ` |
| 2 | wrong use or configuration: nothing was verified; or a result could not be written |
| 3 | no image is denied, and one could not be verified: network, registry, trust, time |

## Flags from other sources

A flag that is not on the command line is taken from, in this order, the file that ` + "`--config`" + ` names, the
environment variable ` + "`QUAYMASTER_<FLAG>`" + ` (` + "`QUAYMASTER_FAIL_ONLY`" + ` for ` + "`--fail-only`" + `; a list has a value
on each line), and the user's own file,
` + "`$XDG_CONFIG_HOME/quaymaster/flags.yaml`" + ` (` + "`~/.config/quaymaster/flags.yaml`" + `). No file is ever read
from the working directory or a repository. ` + "`serve`" + ` has its settings from its own ` + "`--config`" + ` alone.

    apiVersion: quaymaster.dev/v1alpha1
    kind: Flags
    flags:             # of every command that has them
      timeout: 2m
    commands:          # of one command
      verify:
        policy: [/etc/quaymaster/policies]
        plain-http: ["registry.internal:5000"]

Only the command line and the file of ` + "`--config`" + ` may set a flag that can make a result less strict,
such as ` + "`--key`, `--policy` or `--plain-http`" + `: a pull request can bring files, and sometimes variables. From
elsewhere such a flag is an error (exit status 2); those that are accepted are ` + strings.Join(harmless, ", ") + `.
Values that name a file to write (` + "`-o json=FILE`" + `) are not, and those that make a result stricter can only be ` + "`true`" + `.
Each flag from another source is listed on standard error with its source, and in JSON under ` + "`flags`" + `.

`)
	root := rootCommand(command.Terminal{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Env: os.Getenv})
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	describe(&b, root)
	return b.String()
}

func describe(b *strings.Builder, cmd *cobra.Command) {
	cmd.InitDefaultHelpFlag()
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "## %s\n\n%s\n\n```\n%s```\n\n", cmd.CommandPath(), text, cmd.UsageString())
	for _, child := range cmd.Commands() {
		if child.Name() != "help" && cmd.Name() != "completion" {
			describe(b, child)
		}
	}
}

// TestIgnoredFieldsArePublished writes docs/ignored-fields.md from the lists of the
// dialects, and fails where the page is stale.
func TestIgnoredFieldsArePublished(t *testing.T) {
	var want strings.Builder
	want.WriteString(ignoredIntro)
	for _, d := range ignoredFields() {
		fmt.Fprintf(&want, "\n## %s\n\n| field | reason |\n|---|---|\n", d.title)
		if len(d.rows) == 0 {
			t.Errorf("%s: no fields, and status is one", d.title)
		}
		seen := map[string]bool{}
		for _, row := range d.rows {
			if row[0] == "" || row[1] == "" || seen[row[0]] || strings.ContainsAny(row[1], "|\n") {
				t.Errorf("%s: %q is not a row of the table", d.title, row)
			}
			seen[row[0]] = true
			fmt.Fprintf(&want, "| `%s` | %s |\n", row[0], row[1])
		}
	}
	const page = "../../docs/ignored-fields.md"
	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != want.String() {
		t.Errorf("%s is stale: go test ./cmd/quaymaster -run TestIgnoredFieldsArePublished -update", page)
	}
}

const ignoredIntro = `# Fields without an effect

These fields of policies and test suites are accepted and have no effect here, with the reason. Every other
field is honoured, or refused with its path; one that a suite does not have is a warning. The page is
written from the code.
`

type ignoredDialect struct {
	title string
	rows  [][2]string
}

func ignoredFields() []ignoredDialect {
	var list []ignoredDialect
	add := func(title string, rows [][2]string) { list = append(list, ignoredDialect{title, rows}) }
	add("ClusterPolicy and Policy", rowsOf(kyverno.Ignored(), func(f kyverno.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("ValidatingPolicy", rowsOf(validating.Ignored(), func(f kyvernocel.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("MutatingPolicy", rowsOf(mutating.Ignored(), func(f kyvernocel.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("DeletingPolicy", rowsOf(deleting.Ignored(), func(f kyvernocel.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("CleanupPolicy and ClusterCleanupPolicy", rowsOf(cleanup.Ignored(), func(f cleanup.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("GeneratingPolicy", rowsOf(generating.Ignored(), func(f kyvernocel.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("ImageValidatingPolicy, and PolicyException of policies.kyverno.io", rowsOf(imagevalidating.Ignored(), func(f kyvernocel.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("ClusterImagePolicy", rowsOf(sigstore.Ignored(), func(f sigstore.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("TrustRoot", rowsOf(trustroot.Ignored(), func(f trustroot.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("GlobalContextEntry", rowsOf(globalcontext.Ignored(), func(f globalcontext.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	add("Test suites, their values and users", rowsOf(document.Ignored(), func(f document.IgnoredField) [2]string { return [2]string{f.Path, f.Reason} }))
	return list
}

func rowsOf[F any](fields []F, row func(F) [2]string) (rows [][2]string) {
	for _, f := range fields {
		rows = append(rows, row(f))
	}
	return rows
}
