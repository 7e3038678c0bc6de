// Package test is the command quaymaster test, which runs suites of policies.
package test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy/suite"
	"github.com/quaymaster/quaymaster/policy/suite/result"
)

// testFlags select the suites and the output.
type testFlags struct {
	fileName, selector, format           string
	failOnly, detailed, plain, mustExist bool
}

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test PATH...",
		Short: "Test policies against expected results",
		Long: `Test runs suites in the format of Kyverno's command line: policies, objects and
the expected result of each rule for each object. In a folder, it runs every
kyverno-test.yaml recursively, and every test.yaml of the older form.

Objects are evaluated as at admission. Nothing is fetched: the suite defines the
look-ups of policies, and images, which are built and signed with throw-away keys
for the run. See docs/testing-policies.md.

Exit status: 0 if every check has the expected result, 1 if one has not, or a
suite or one of its policies cannot be read, 2 for wrong use.`,
		Example: `  quaymaster test policies/
  quaymaster test policies/ -t 'policy=require-*,resource=good*'
  quaymaster test policies/ --require-tests -o junit > report.xml`,
		Args: usage.Arguments("a folder of suites", 0),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.run(cmd, t, paths) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.fileName, "file-name", "f", suite.FileName, "file `name` of suites")
	flags.StringVarP(&f.selector, "test-case-selector", "t", "policy=*,rule=*,resource=*",
		"run only the checks with policy, rule and resource that match `patterns`")
	flags.StringVarP(&f.format, "output-format", "o", textFormat, "`format`: text, "+strings.Join(result.Formats(), ", "))
	usage.Complete(cmd, "output-format", formats()...)
	flags.BoolVar(&f.failOnly, "fail-only", false, "show failures only")
	flags.BoolVar(&f.detailed, "detailed-results", false, "show the messages of rules, also of checks that did not fail")
	flags.BoolVar(&f.plain, "remove-color", false, "no colours, as with NO_COLOR")
	flags.BoolVar(&f.mustExist, "require-tests", false, "fail if there is no check to run")
	return cmd
}

// textFormat is the format that people read.
const textFormat = "text"

func formats() []string { return append([]string{textFormat}, result.Formats()...) }

func (f *testFlags) run(cmd *cobra.Command, t command.Terminal, paths []string) error {
	if err := usage.Choice("-o", f.format, formats()...); err != nil {
		return err
	}
	if f.format == textFormat {
		f.format = "" // as package result names it
	}
	filter, err := suite.ParseFilter(f.selector)
	if err != nil {
		return fmt.Errorf("-t: %w", err)
	}
	found, err := suite.Find(paths, f.fileName)
	if err != nil {
		return err
	}
	if len(found) == 0 && !f.mustExist {
		t.Warn(fmt.Sprintf("no %s below %s: set --file-name, or --require-tests to fail", f.fileName, strings.Join(paths, ", ")))
	}
	end := output.Wait(t, "running "+command.Count(len(found), "suite"))
	report := suite.Run(cmd.Context(), found, suite.Options{Filter: filter})
	end()
	if cmd.Context().Err() != nil {
		fmt.Fprintln(t.Err, "quaymaster: interrupted; not every suite was run")
		return command.Status(command.ExitError)
	}
	if f.mustExist && report.Passed+report.Failed+report.Skipped == 0 {
		return errors.New("--require-tests: there is no check to run")
	}
	for _, s := range report.Suites {
		for _, warning := range s.Warnings {
			t.Warn(fmt.Sprintf("%s (%s): %s", s.Name, s.Path, warning))
		}
	}
	if err := result.Write(t.Out, report, f.format, result.TextOptions{
		FailOnly: f.failOnly, Detailed: f.detailed, Color: f.format == "" && !f.plain && t.Color(),
	}); err != nil {
		return err
	}
	if report.Failed > 0 {
		return command.Status(command.ExitDenied)
	}
	return nil
}
