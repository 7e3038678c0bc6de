package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/policy/kyverno"
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
	var b strings.Builder
	b.WriteString(`# Command line

Generated from the commands; flags, formats and exit statuses are a contract.

| exit status | meaning |
|---|---|
| 0 | every image may run; a failure under audit, or admitted by a policy's failure setting, is a warning |
| 1 | an image is denied, or no policy speaks of one under ` + "`--require-match`" + ` |
| 2 | wrong use or configuration: nothing was verified |
| 3 | no image is denied, and one could not be verified: network, registry, trust, time |

`)
	root := rootCommand(terminal{in: &bytes.Buffer{}, out: &bytes.Buffer{}, err: &bytes.Buffer{}, env: os.Getenv})
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

// TestIgnoredFieldsArePublished keeps the list in docs/kyverno-differences.md
// complete, and free of fields that are not on it.
func TestIgnoredFieldsArePublished(t *testing.T) {
	page, err := os.ReadFile("../../docs/kyverno-differences.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| field | reason |\n|---|---|\n")
	if !found {
		t.Fatal("the page has no table of ignored fields")
	}
	var want strings.Builder
	for _, field := range kyverno.Ignored() {
		fmt.Fprintf(&want, "| `%s` | %s |\n", field.Path, field.Reason)
	}
	if table != want.String() {
		t.Errorf("the table is\n%s\nand must be\n%s", table, want.String())
	}
}
