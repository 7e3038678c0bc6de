// Package output writes the result of a command in the formats and to the files that its flags
// name (docs/cli.md).
package output

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
	"github.com/spf13/pflag"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
	"github.com/quaymaster/quaymaster/report/junit"
	"github.com/quaymaster/quaymaster/report/markdown"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/sarif"
)

// Destination is one requested output.
type Destination struct {
	Format  string
	file    bool   // not standard output
	color   bool   // a terminal that shows colours
	release string // of this program
}

// Result is the result of a run, which is written in each requested format.
type Result interface {
	Write(w io.Writer, to Destination) error
}

// Formats are all formats, in the order of the help text.
func Formats() []string {
	return []string{Text, JSON, YAML, "sarif", "junit", "markdown", github, PolicyReport, OpenReports, VSA}
}

// The formats with special treatment. The runner removes github's lines from the log, so that
// github and text may share standard output.
const (
	Text         = "text"
	JSON         = "json"
	github       = "github"
	PolicyReport = "policyreport"
	OpenReports  = "openreports"
	VSA          = "vsa" // verification summaries
)

// formatNames lists them for messages.
func formatNames(names []string) string {
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// StepSummary is the variable that names the file of a GitHub Actions step's summary.
const StepSummary = "GITHUB_STEP_SUMMARY"

// Flags configure the output.
type Flags struct {
	Formats      []string
	verbose      bool
	requireMatch bool
	// Excluded is the format that the command lacks; empty means that it has all.
	Excluded string
}

// Available is the formats that the command has.
func (f *Flags) Available() []string {
	return slices.DeleteFunc(Formats(), func(name string) bool { return name == f.Excluded })
}

// Has reports whether a format is requested.
func (f *Flags) Has(format string) bool {
	return slices.ContainsFunc(f.Formats, func(asked string) bool {
		name, _, _ := strings.Cut(asked, "=")
		return name == format
	})
}

// HasOther reports whether a format other than these is requested.
func (f *Flags) HasOther(names ...string) bool {
	return slices.ContainsFunc(f.Formats, func(asked string) bool {
		name, _, _ := strings.Cut(asked, "=")
		return !slices.Contains(names, name)
	})
}

// RegisterFormats registers the flag of the formats alone.
func (f *Flags) RegisterFormats(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.Formats, "output", "o", []string{Text}, "`format[=path]`: "+formatNames(f.Available())+"; may be repeated")
	usage.Complete(cmd, "output", f.Available()...)
}

// Register registers all flags.
func (f *Flags) Register(cmd *cobra.Command) {
	f.RegisterFormats(cmd)
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "show durations and registry requests too")
	RegisterRequireMatch(cmd, &f.requireMatch)
}

// RegisterRequireMatch registers --require-match.
func RegisterRequireMatch(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "require-match", false, "exit with 1 if no policy matches an image or document")
}

// Outputs are the requested outputs.
type Outputs []output

// output is one requested output.
type output struct {
	format string
	asked  string
	to     io.Writer
	file   *os.File // nil for standard output
}

// Open refuses unknown formats, and two formats for one destination, before any work is done. It
// truncates files at once: if the run ends early, results of a previous run must not be taken
// for its results.
func (f *Flags) Open(t command.Terminal) (Outputs, error) {
	all, err := f.outputs()
	if err != nil {
		return nil, err
	}
	for i := range all {
		_, path, toFile := strings.Cut(all[i].asked, "=")
		if !toFile {
			all[i].to = t.Out
			continue
		}
		flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
		if path == t.Env(StepSummary) {
			flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND // other commands of the step append to it as well
		}
		file, err := os.OpenFile(path, flags, 0o644)
		if err != nil {
			all.close()
			return nil, fmt.Errorf("-o %s: %w", all[i].asked, err)
		}
		all[i].file, all[i].to = file, file
	}
	return all, nil
}

// outputs reads the flag.
func (f *Flags) outputs() (Outputs, error) {
	var all Outputs
	places := map[string]string{}
	table := f.Available()
	for _, asked := range f.Formats {
		name, path, toFile := strings.Cut(asked, "=")
		if err := usage.Choice("-o", name, table...); err != nil {
			return nil, err
		}
		if toFile && path == "" {
			return nil, fmt.Errorf("-o %s: the path is empty", asked)
		}
		place := path
		if !toFile && name == github {
			place = "=" + name // shares standard output with another format
		}
		if other, taken := places[place]; taken && toFile {
			return nil, fmt.Errorf("-o %s and -o %s would write over one another", other, asked)
		} else if taken {
			return nil, errors.New("two outputs would be mixed on standard output: send one to a file, as in -o json=verdicts.json")
		}
		places[place] = asked
		all = append(all, output{format: name, asked: asked})
	}
	return all, nil
}

func (all Outputs) close() {
	for _, one := range all {
		if one.file != nil {
			_ = one.file.Close() // nothing was written
		}
	}
}

// Verdicts are the outcomes of a run, or the error that prevented them.
type Verdicts struct {
	Outcomes  []gate.Outcome
	Failure   error
	Reproduce func(report.Record, report.Image) string
	Summarize func([]gate.Outcome, io.Writer) error
	// Flags are those that are not on the command line.
	Flags   []report.Flag
	verbose bool
}

// Report writes every requested output, also when images are denied or nothing was decided, and
// returns the command's error.
func (f *Flags) Report(t command.Terminal, all Outputs, v *Verdicts) error {
	v.verbose = f.verbose
	if err := all.Write(t, v, v.Failure); err != nil {
		return err
	}
	return Exit(t, v.Outcomes, f.requireMatch)
}

// Write writes every output. It returns the run's failure before errors of writing.
func (all Outputs) Write(t command.Terminal, what Result, failure error) error {
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
func (o *output) write(t command.Terminal, what Result) error {
	file := o.file != nil
	var buffer bytes.Buffer
	err := what.Write(&buffer, Destination{Format: o.format, file: file, color: !file && t.Color(), release: t.Release})
	if err == nil {
		_, err = o.to.Write(buffer.Bytes())
	}
	if o.file != nil {
		err = errors.Join(err, o.file.Close())
	}
	return err
}

// Write implements Result.
func (v *Verdicts) Write(w io.Writer, to Destination) error {
	switch to.Format {
	case JSON, YAML:
		return WriteAs(w, to.Format, v.list().Write)
	case "sarif":
		return sarif.Write(w, finding.Of(v.list()), to.release)
	case "junit":
		return junit.Write(w, finding.Of(v.list()))
	case "markdown":
		return markdown.Write(w, finding.Of(v.list()))
	case github:
		return markdown.Annotations(w, finding.Of(v.list()))
	case PolicyReport:
		return v.reports(w, policyreport.PolicyReports)
	case OpenReports:
		return v.reports(w, policyreport.OpenReports)
	case VSA:
		return v.vsa(w)
	}
	return v.text(w, to)
}

// list is the input of all formats.
func (v *Verdicts) list() report.List {
	list := report.NewList(v.Outcomes)
	if v.Failure != nil {
		list = report.Failed(v.Reason())
	}
	list.Flags = v.Flags
	return list
}

// Reason returns why nothing was decided. If the failure is only a status, the reason is already
// on standard error.
func (v *Verdicts) Reason() string {
	if _, said := errors.AsType[command.Status](v.Failure); said {
		return "the run was interrupted"
	}
	return v.Failure.Error()
}

// text writes nothing to a terminal if nothing was decided: the reason is on standard error.
func (v *Verdicts) text(w io.Writer, to Destination) error {
	switch {
	case v.Failure != nil && to.file:
		_, err := fmt.Fprintf(w, "nothing was decided: %s\n", report.Escape(v.Reason()))
		return err
	case v.Failure != nil:
		return nil //nolint:nilerr // the caller reports the failure
	}
	return report.Text(w, v.Outcomes, report.TextOptions{Color: to.color, Verbose: v.verbose, Reproduce: v.Reproduce})
}

// vsa leaves the file empty if nothing was decided, because there is no result to attest.
func (v *Verdicts) vsa(w io.Writer) error {
	if v.Failure != nil {
		return nil //nolint:nilerr // the caller reports the failure
	}
	return v.Summarize(v.Outcomes, w)
}

// reports writes reports as in a cluster. The format cannot express a run that decided nothing;
// the file stays empty, which is no report.
func (v *Verdicts) reports(w io.Writer, api policyreport.API) error {
	if v.Failure != nil {
		return nil //nolint:nilerr // the caller reports the failure
	}
	now := time.Now()
	decided := make([]report.Decided, len(v.Outcomes))
	for i, outcome := range v.Outcomes {
		decided[i] = report.Decided{Outcome: outcome, Occasion: report.Occasion{
			Time: now, Process: report.ProcessCommand, Allowed: outcome.Result.Admits(),
		}}
	}
	return policyreport.Write(w, api, decided)
}

// Exit returns the exit status for the outcomes, and reports images that no policy matches,
// which the text does not show.
func Exit(t command.Terminal, outcomes []gate.Outcome, requireMatch bool) error {
	summary := report.Count(outcomes)
	if requireMatch && summary.Unchecked > 0 {
		fmt.Fprintf(t.Err, "quaymaster: --require-match: no policy matches %d of the images and documents\n", summary.Unchecked)
	}
	if code := summary.ExitStatus(requireMatch); code != command.ExitAllowed {
		return command.Status(code)
	}
	return nil
}

// CommandLine returns the command that explains one image's verdict, with the same flags.
func CommandLine(cmd *cobra.Command) func(report.Record, report.Image) string {
	var flags []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "output", "filename", "payload", "verbose", "require-match":
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range list.GetSlice() {
				if f.Name == "key" && value == authority.StandardInput {
					value = "KEY_FILE" // standard input was read
				}
				flags = append(flags, "--"+f.Name+" "+engine.Quote(redact.Text(value)))
			}
			return
		}
		if f.Value.Type() == "bool" {
			flags = append(flags, "--"+f.Name+"="+f.Value.String())
			return
		}
		flags = append(flags, "--"+f.Name+" "+engine.Quote(f.Value.String()))
	})
	return func(record report.Record, image report.Image) string {
		words := append([]string{"quaymaster explain"}, flags...)
		file, _, ofFile := strings.Cut(record.Object.Source, ", document")
		switch {
		case ofFile && file == manifest.StandardInput:
			file = "-"
		case !ofFile:
			return strings.Join(append(words, engine.Quote(image.Written)), " ")
		}
		if record.Object.Kind == "" {
			return strings.Join(append(words, "--payload", engine.Quote(file)), " ")
		}
		return strings.Join(append(words, "-f", engine.Quote(file)), " ") // policies match the object, not the image alone
	}
}
