package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/suite"
)

// testFlags select the suites and the output.
type testFlags struct {
	fileName, selector, format           string
	failOnly, detailed, plain, mustExist bool
}

func testCommand(t terminal) *cobra.Command {
	var f testFlags
	cmd := &cobra.Command{
		Use:   "test PATH...",
		Short: "Test policies against what their author expects of them",
		Long: `Test runs suites in the format of Kyverno's command line: policies, objects and
the results that each rule is to have for each object. Of a folder, every
kyverno-test.yaml in it and below is run, and every test.yaml of the older form.

Objects are judged as at admission. Nothing is fetched: what policies look up is
given in the suite, and so are images, which are built and signed under
throw-away keys for the run. See docs/testing-policies.md.

Exit status: 0 if every check has the expected result, 1 if one has not or a
suite cannot be run, 2 for wrong use.`,
		Example: `  quaymaster test policies/
  quaymaster test policies/ -t 'policy=require-*,resource=good*'
  quaymaster test policies/ --require-tests -o junit > report.xml`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error { return f.run(cmd, t, paths) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.fileName, "file-name", "f", suite.FileName, "`name` of the files that are suites")
	flags.StringVarP(&f.selector, "test-case-selector", "t", "policy=*,rule=*,resource=*", "run the checks alone whose policy, rule and resource match `patterns`")
	flags.StringVarP(&f.format, "output-format", "o", "", "`format` in place of text: "+strings.Join(suite.Formats(), ", "))
	flags.BoolVar(&f.failOnly, "fail-only", false, "tell what failed alone")
	flags.BoolVar(&f.detailed, "detailed-results", false, "tell what rules said, also of what did not fail")
	flags.BoolVar(&f.plain, "remove-color", false, "no colours, as with NO_COLOR")
	flags.BoolVar(&f.mustExist, "require-tests", false, "fail if there is no check to run")
	return cmd
}

func (f *testFlags) run(cmd *cobra.Command, t terminal, paths []string) error {
	if f.format != "" && !slices.Contains(suite.Formats(), f.format) {
		return fmt.Errorf("-o %s: want %s", f.format, strings.Join(suite.Formats(), ", "))
	}
	filter, err := suite.ParseFilter(f.selector)
	if err != nil {
		return fmt.Errorf("-t: %w", err)
	}
	found, err := suite.Find(paths, f.fileName)
	if err != nil {
		return err
	}
	report := suite.Run(cmd.Context(), found, suite.Options{Filter: filter})
	if cmd.Context().Err() != nil {
		fmt.Fprintln(t.err, "quaymaster: interrupted; not every suite was run")
		return status(exitUnable)
	}
	if f.mustExist && report.Passed+report.Failed+report.Skipped == 0 {
		return errors.New("--require-tests: there is no check to run")
	}
	if err := suite.Write(t.out, report, f.format, suite.TextOptions{
		FailOnly: f.failOnly, Detailed: f.detailed, Color: f.format == "" && !f.plain && t.color(),
	}); err != nil {
		return err
	}
	if report.Failed > 0 {
		return status(exitDenied)
	}
	return nil
}
