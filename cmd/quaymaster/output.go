package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
	"github.com/quaymaster/quaymaster/report/junit"
	"github.com/quaymaster/quaymaster/report/markdown"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/sarif"
)

// telling is the result of a run, with a method for each format.
type telling interface {
	// on returns the result for a file, or for a terminal with colours.
	on(file, color bool) telling

	text(w io.Writer) error
	json(w io.Writer) error
	sarif(w io.Writer) error
	junit(w io.Writer) error
	markdown(w io.Writer) error
	github(w io.Writer) error
	policyReport(w io.Writer) error
	openReport(w io.Writer) error
	vsa(w io.Writer) error
}

// outputFormat is one output format.
type outputFormat struct {
	name  string
	write func(telling, io.Writer) error
}

// outputFormats are all formats, in the order of the help text.
func outputFormats() []outputFormat {
	return []outputFormat{
		{textFormat, telling.text}, {jsonFormat, telling.json},
		{"sarif", telling.sarif}, {"junit", telling.junit},
		{"markdown", telling.markdown}, {githubFormat, telling.github},
		{"policyreport", telling.policyReport}, {"openreports", telling.openReport},
		{vsaFormat, telling.vsa},
	}
}

// The formats with special treatment. The runner removes github's lines from the log, so that
// github and text may share standard output.
const (
	textFormat   = "text"
	jsonFormat   = "json"
	githubFormat = "github"
)

// formatNames lists them for messages.
func formatNames(formats []outputFormat) string {
	var names []string
	for _, format := range formats {
		names = append(names, format.name)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// stepSummary is the variable that names the file of a GitHub Actions step's summary.
const stepSummary = "GITHUB_STEP_SUMMARY"

// outputFlags configure the output.
type outputFlags struct {
	formats      []string
	verbose      bool
	requireMatch bool
	// leavesOut reports whether a command lacks a format; nil means that it has all.
	leavesOut func(name string) bool
}

// table is the formats that the command has.
func (f *outputFlags) table() []outputFormat {
	return slices.DeleteFunc(outputFormats(), func(format outputFormat) bool { return f.leavesOut != nil && f.leavesOut(format.name) })
}

// asksBeside reports whether a format other than these is requested.
func (f *outputFlags) asksBeside(names ...string) bool {
	return slices.ContainsFunc(f.formats, func(asked string) bool {
		name, _, _ := strings.Cut(asked, "=")
		return !slices.Contains(names, name)
	})
}

func (f *outputFlags) registerFormats(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.formats, "output", "o", []string{textFormat}, "`format[=path]`: "+formatNames(f.table())+"; may be repeated")
}

func (f *outputFlags) register(cmd *cobra.Command) {
	f.registerFormats(cmd)
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show durations and registry requests too")
	registerRequireMatch(cmd, &f.requireMatch)
}

func registerRequireMatch(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "require-match", false, "exit with 1 if no policy matches an image or document")
}

// output is one requested output.
type output struct {
	format outputFormat
	asked  string
	to     io.Writer
	file   *os.File // nil for standard output
}

// open refuses unknown formats, and two formats for one destination, before any work is done. It
// truncates files at once: if the run ends early, results of a previous run must not be taken
// for its results.
func (f *outputFlags) open(t terminal) ([]output, error) {
	all, err := f.outputs()
	if err != nil {
		return nil, err
	}
	for i := range all {
		_, path, toFile := strings.Cut(all[i].asked, "=")
		if !toFile {
			all[i].to = t.out
			continue
		}
		flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
		if path == t.env(stepSummary) {
			flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND // other commands of the step append to it as well
		}
		file, err := os.OpenFile(path, flags, 0o644)
		if err != nil {
			closeAll(all)
			return nil, fmt.Errorf("-o %s: %w", all[i].asked, err)
		}
		all[i].file, all[i].to = file, file
	}
	return all, nil
}

// outputs reads the flag.
func (f *outputFlags) outputs() ([]output, error) {
	var all []output
	places := map[string]string{}
	table := f.table()
	for _, asked := range f.formats {
		name, path, toFile := strings.Cut(asked, "=")
		at := slices.IndexFunc(table, func(known outputFormat) bool { return known.name == name })
		if at < 0 {
			return nil, fmt.Errorf("-o %s: want %s", name, formatNames(table))
		}
		if toFile && path == "" {
			return nil, fmt.Errorf("-o %s: the path is empty", asked)
		}
		place := path
		if !toFile && name == githubFormat {
			place = "=" + name // shares standard output with another format
		}
		if other, taken := places[place]; taken && toFile {
			return nil, fmt.Errorf("-o %s and -o %s would write over one another", other, asked)
		} else if taken {
			return nil, errors.New("two outputs would be mixed on standard output: send one to a file, as in -o json=verdicts.json")
		}
		places[place] = asked
		all = append(all, output{format: table[at], asked: asked})
	}
	return all, nil
}

func closeAll(all []output) {
	for _, one := range all {
		if one.file != nil {
			_ = one.file.Close() // nothing was written
		}
	}
}

// verdicts are the outcomes of a run, or the error that prevented them.
type verdicts struct {
	outcomes  []gate.Outcome
	failure   error
	reproduce func(report.Record, report.Image) string
	summarize func([]gate.Outcome, io.Writer) error

	toFile, color, verbose bool
}

// tell writes every requested output, also when images are denied or nothing was decided, and
// returns the command's error.
func (f *outputFlags) tell(t terminal, all []output, v *verdicts) error {
	v.verbose = f.verbose
	if err := writeAll(t, all, v, v.failure); err != nil {
		return err
	}
	return exit(t, v.outcomes, f.requireMatch)
}

// writeAll writes every output. It returns the run's failure before errors of writing.
func writeAll(t terminal, all []output, what telling, failure error) error {
	var errs []error
	for _, one := range all {
		if err := one.write(t, what); err != nil {
			errs = append(errs, fmt.Errorf("-o %s: %w", one.asked, err))
		}
	}
	if failure != nil {
		errs = append([]error{failure}, errs...)
	}
	if len(errs) == 1 {
		return errs[0] // it may be only a status
	}
	return errors.Join(errs...)
}

// write writes one output as a whole, and closes its file.
func (o *output) write(t terminal, what telling) error {
	file := o.file != nil
	var buffer bytes.Buffer
	err := o.format.write(what.on(file, !file && t.color()), &buffer)
	if err == nil {
		_, err = o.to.Write(buffer.Bytes())
	}
	if o.file != nil {
		err = errors.Join(err, o.file.Close())
	}
	return err
}

func (v *verdicts) on(file, color bool) telling {
	there := *v
	there.toFile, there.color = file, color
	return &there
}

// list is the input of all formats.
func (v *verdicts) list() report.List {
	if v.failure != nil {
		return report.Failed(v.reason())
	}
	return report.NewList(v.outcomes)
}

// reason returns why nothing was decided. If the failure is only a status, the reason is already
// on standard error.
func (v *verdicts) reason() string {
	if _, said := errors.AsType[status](v.failure); said {
		return "the run was interrupted"
	}
	return v.failure.Error()
}

// text writes nothing to a terminal if nothing was decided: the reason is on standard error.
func (v *verdicts) text(w io.Writer) error {
	switch {
	case v.failure != nil && v.toFile:
		_, err := fmt.Fprintf(w, "nothing was decided: %s\n", report.Escape(v.reason()))
		return err
	case v.failure != nil:
		return nil //nolint:nilerr // the caller reports the failure
	}
	return report.Text(w, v.outcomes, report.TextOptions{Color: v.color, Verbose: v.verbose, Reproduce: v.reproduce})
}

func (v *verdicts) json(w io.Writer) error     { return v.list().Write(w) }
func (v *verdicts) sarif(w io.Writer) error    { return sarif.Write(w, finding.Of(v.list()), version) }
func (v *verdicts) junit(w io.Writer) error    { return junit.Write(w, finding.Of(v.list())) }
func (v *verdicts) markdown(w io.Writer) error { return markdown.Write(w, finding.Of(v.list())) }
func (v *verdicts) github(w io.Writer) error   { return markdown.Annotations(w, finding.Of(v.list())) }

func (v *verdicts) policyReport(w io.Writer) error { return v.reports(w, policyreport.PolicyReports) }
func (v *verdicts) openReport(w io.Writer) error   { return v.reports(w, policyreport.OpenReports) }

// vsa leaves the file empty if nothing was decided, because there is no result to attest.
func (v *verdicts) vsa(w io.Writer) error {
	if v.failure != nil {
		return nil //nolint:nilerr // the caller reports the failure
	}
	return v.summarize(v.outcomes, w)
}

// reports writes reports as in a cluster. The format cannot express a run that decided nothing;
// the file stays empty, which is no report.
func (v *verdicts) reports(w io.Writer, api policyreport.API) error {
	if v.failure != nil {
		return nil //nolint:nilerr // the caller reports the failure
	}
	now := time.Now()
	decided := make([]report.Decided, len(v.outcomes))
	for i, outcome := range v.outcomes {
		decided[i] = report.Decided{Outcome: outcome, Occasion: report.Occasion{
			Time: now, Process: report.ProcessCommand, Allowed: outcome.Result.Admits(),
		}}
	}
	return policyreport.Write(w, api, decided)
}

// exit returns the exit status for the outcomes, and reports images that no policy matches,
// which the text does not show.
func exit(t terminal, outcomes []gate.Outcome, requireMatch bool) error {
	summary := report.Count(outcomes)
	if requireMatch && summary.Unchecked > 0 {
		fmt.Fprintf(t.err, "quaymaster: --require-match: no policy matches %d of the images and documents\n", summary.Unchecked)
	}
	if code := summary.ExitStatus(requireMatch); code != exitAllowed {
		return status(code)
	}
	return nil
}
