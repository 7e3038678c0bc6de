package apply

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/preview"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/report"
)

// applyOutput configures the output of apply.
type applyOutput struct {
	format, mutated, generated             string
	auditWarn, warnNoPass, detailed, plain bool
	warnExit                               int
}

func (f *applyOutput) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	output.RegisterDocument(cmd, "output-format", &f.format)
	flags.StringVar(&f.mutated, "mutated", "", "write the mutated objects to a `file`, or - for standard output")
	flags.StringVar(&f.generated, "generated", "", "write the generated objects to a `file`, or - for standard output")
	flags.BoolVar(&f.auditWarn, "audit-warn", false, "report failures under audit as warnings")
	flags.IntVar(&f.warnExit, "warn-exit-code", 0, "exit `status` in place of 0 if there are warnings, or failures or errors under audit")
	flags.BoolVar(&f.warnNoPass, "warn-no-pass", false, "warn if no rule passes any object")
	flags.BoolVar(&f.detailed, "detailed-results", false, "show rules that do not apply, and messages of rules that passed")
	flags.BoolVar(&f.plain, "remove-color", false, "no colours, as with NO_COLOR")
}

func (f *applyOutput) check() error {
	if err := output.CheckDocument(f.format); err != nil {
		return err
	}
	switch {
	case f.mutated == "-" && f.generated == "-":
		return errors.New("--mutated and --generated would be mixed on standard output: send one to a file")
	case f.warnExit < 0 || f.warnExit > 255 || f.warnExit == command.ExitDenied || f.warnExit == command.ExitUsage || f.warnExit == command.ExitError:
		return fmt.Errorf("--warn-exit-code %d: want a status from 0 to 255 that does not mean something else (1, 2 and 3 do)", f.warnExit)
	}
	return nil
}

// The report of apply, in JSON.
type (
	applyReport struct {
		Objects  []applyObject  `json:"objects"`
		Warnings []string       `json:"warnings,omitempty"`
		Errors   []string       `json:"errors,omitempty"` // about policies that could not be read
		Summary  map[string]int `json:"summary"`
		// Deletions are the next runs of policies that delete; nil for none.
		Deletions *preview.Preview `json:"deletions,omitempty"`
	}
	applyObject struct {
		Kind      string                  `json:"kind,omitempty"`
		Namespace string                  `json:"namespace,omitempty"`
		Name      string                  `json:"name,omitempty"`
		Source    string                  `json:"source,omitempty"`
		Result    gate.Result             `json:"result"`
		Results   []applyRule             `json:"results"`
		Reasons   []string                `json:"reasons,omitempty"`
		rules     []evaluation.RuleResult // in the order of evaluation
	}
	applyRule struct {
		Policy    string   `json:"policy"`
		Rule      string   `json:"rule,omitempty"`
		Kind      string   `json:"kind"`
		Result    string   `json:"result"`
		Message   string   `json:"message,omitempty"`
		Audit     bool     `json:"audit,omitempty"`
		Exception string   `json:"exception,omitempty"`
		Changed   bool     `json:"changed,omitempty"`
		Generates []string `json:"generates,omitempty"`
		// Images are those that a rule about images found.
		Images []applyImage `json:"images,omitempty"`
		warns  bool         // the user gets a warning about the failure, which is one of Audit
	}
	applyImage struct {
		Image     string          `json:"image"`
		Container string          `json:"container"`
		Path      string          `json:"path"`
		Result    string          `json:"result"`
		Reasons   []policy.Reason `json:"reasons"`
	}
)

// applyResults are the results in the order of the summary.
var applyResults = []string{evaluation.Pass, evaluation.Fail, evaluation.Warn, evaluation.Error, evaluation.Skip}

// tell writes all requested output, and returns the status.
func (f *applyOutput) tell(t command.Terminal, work *applied) error {
	report := f.report(work)
	out := t.Out
	if f.mutated == "-" || f.generated == "-" {
		out = t.Err // standard output carries the objects
	}
	var err error
	if f.format != output.Text {
		err = output.WriteDocument(out, f.format, report)
	} else {
		err = f.text(out, report, !f.plain && out == t.Out && t.Color())
	}
	if err != nil {
		return err
	}
	for _, warning := range report.Warnings {
		fmt.Fprintf(t.Err, "quaymaster: warning: %s\n", warning)
	}
	if err := errors.Join(work.unread...); err != nil {
		return fmt.Errorf("policies that could not be read were not evaluated, and no objects are written:\n%w", err)
	}
	if err := f.objects(t, work); err != nil {
		return err
	}
	return f.exit(report)
}

// report builds the report of a run.
func (f *applyOutput) report(work *applied) applyReport {
	report := applyReport{Objects: make([]applyObject, 0, len(work.answers)), Warnings: work.warnings, Summary: map[string]int{}}
	for _, result := range applyResults {
		report.Summary[result] = 0
	}
	for _, err := range work.unread {
		report.Errors = append(report.Errors, err.Error())
	}
	report.Deletions = work.deletions()
	for i := range work.answers {
		a := &work.answers[i]
		object := work.objects[i]
		one := applyObject{
			Kind: object.Kind(), Namespace: object.Namespace(), Name: object.Name(), Source: object.Source(), Result: a.Outcome.Result,
			Results: make([]applyRule, 0, len(a.Rules)), rules: a.Rules,
		}
		for _, reason := range a.Outcome.Reasons {
			one.Reasons = append(one.Reasons, reason.Message)
		}
		if a.Err != nil {
			one.Result, one.Reasons = gate.Error, append(one.Reasons, a.Err.Error())
		}
		for j := range a.Rules {
			if found := a.Rules[j].Deletion; found != nil {
				report.Deletions.Rule(a.Rules[j].Policy, found.Rule).Add(
					preview.Object{Kind: object.Kind(), Namespace: object.Namespace(), Name: object.Name(), Source: object.Source()}, found.Decision)
				continue
			}
			rule := f.rule(work.policies, &a.Rules[j])
			report.Summary[rule.Result]++
			one.Results = append(one.Results, rule)
		}
		report.Objects = append(report.Objects, one)
	}
	return report
}

func (f *applyOutput) rule(policies []evaluation.Policy, s *evaluation.RuleResult) applyRule {
	rule := applyRule{
		Policy: s.Policy.ID(), Rule: s.Rule, Kind: string(s.Kind), Result: s.Result, Message: s.Message, Changed: s.Changed,
		Audit: s.Result == evaluation.Fail && s.Action.Admits(), warns: s.Action == policy.Warn,
	}
	if s.Kind == policy.ImageRule {
		rule.Kind = "verifyImages"
	}
	if s.Exception != nil {
		rule.Exception = s.Exception.ID()
	}
	for _, found := range s.Images {
		rule.Images = append(rule.Images, applyImage(found))
	}
	for _, content := range s.Made {
		rule.Generates = append(rule.Generates, trial.NameOf(content))
	}
	if trial.IsUnscored(policies, s) {
		rule.Result = evaluation.Warn
	}
	if rule.Audit && f.auditWarn {
		rule.Result = evaluation.Warn
	}
	return rule
}

// text writes the rules of each object, and the counts.
func (f *applyOutput) text(w io.Writer, report applyReport, color bool) error {
	var b strings.Builder
	for i := range report.Objects {
		f.object(&b, &report.Objects[i], color)
	}
	if report.Deletions != nil {
		report.Deletions.Text(&b)
	}
	for i, result := range applyResults {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %d", result, report.Summary[result])
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// object writes one object; an object without a result is left out.
func (f *applyOutput) object(b *strings.Builder, o *applyObject, color bool) {
	var lines []string
	for i := range o.Results {
		r := &o.Results[i]
		if r.Result == evaluation.Skip && !f.detailed && r.Exception == "" {
			continue
		}
		lines = append(lines, f.line(r, color))
	}
	if len(lines) == 0 && o.Result.Admits() {
		return
	}
	title := strings.Trim(o.Kind+"/"+o.Namespace+"/"+o.Name, "/")
	b.WriteString(report.Clean(strings.ReplaceAll(title, "//", "/")))
	if o.Source != "" {
		fmt.Fprintf(b, " (%s)", report.Clean(o.Source))
	}
	switch o.Result {
	case gate.Deny:
		b.WriteString(": denied\n")
	case gate.Error:
		b.WriteString(": could not be verified\n")
	default:
		b.WriteString("\n")
	}
	for _, line := range lines {
		b.WriteString(line)
	}
	if !o.explained() {
		for _, reason := range o.Reasons {
			fmt.Fprintf(b, "  %s\n", escaped(indented(reason)))
		}
	}
	b.WriteByte('\n')
}

// explained reports whether a rule's result explains why the object is not admitted. Otherwise
// the reasons belong to no rule, for example if a mutation changes the object's identity.
func (o *applyObject) explained() bool {
	return o.Result.Admits() || slices.ContainsFunc(o.Results, func(r applyRule) bool {
		return r.Result == evaluation.Error || r.Result == evaluation.Fail && !r.Audit
	})
}

var applyColors = map[string]string{evaluation.Pass: "\x1b[32m", evaluation.Fail: "\x1b[31m", evaluation.Error: "\x1b[31m", evaluation.Warn: "\x1b[33m"}

func (f *applyOutput) line(r *applyRule, color bool) string {
	word := fmt.Sprintf("%-5s", r.Result)
	if code := applyColors[r.Result]; color && code != "" {
		word = code + word + "\x1b[0m"
	}
	line := r.Policy
	if r.Rule != "" {
		line += "/" + r.Rule
	}
	var notes []string
	if r.Changed && r.Kind == string(policy.MutateRule) {
		notes = append(notes, "changes the object")
	}
	switch {
	case r.Audit && r.warns:
		notes = append(notes, "warn")
	case r.Audit:
		notes = append(notes, "audit")
	}
	if r.Exception != "" {
		notes = append(notes, "exception "+report.Clean(r.Exception))
	}
	if len(r.Generates) > 0 {
		notes = append(notes, "would create "+report.Clean(strings.Join(r.Generates, ", ")))
	}
	if len(notes) > 0 {
		line += " (" + strings.Join(notes, "; ") + ")"
	}
	if r.Message != "" && (r.Result != evaluation.Pass || f.detailed) && r.Exception == "" {
		line += ": " + indented(r.Message)
	}
	return "  " + word + " " + escaped(line) + "\n"
}

// indented keeps the lines of a foreign text apart from the report's own.
func indented(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n        ")
}

// escaped makes foreign text safe for a terminal.
func escaped(text string) string { return report.Escape(text) }

// objects writes the requested objects as YAML documents.
func (f *applyOutput) objects(t command.Terminal, work *applied) error {
	var mutated, generated []any
	for i := range work.answers {
		if f.mutated != "" {
			object, err := trial.Mutated(work.objects[i], &work.answers[i])
			if err != nil {
				return fmt.Errorf("--mutated: %w", err)
			}
			mutated = append(mutated, object)
		}
		for _, rule := range work.answers[i].Rules {
			for _, made := range rule.Made {
				generated = append(generated, made)
			}
		}
	}
	if err := writeObjects(t, "--mutated", f.mutated, mutated); err != nil {
		return err
	}
	return writeObjects(t, "--generated", f.generated, generated)
}

func writeObjects(t command.Terminal, flag, path string, objects []any) (err error) {
	if path == "" {
		return nil
	}
	out, closing, err := t.Create(path)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	defer func() { err = errors.Join(err, closing()) }()
	for i, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

// exit returns the exit status for the results.
func (f *applyOutput) exit(report applyReport) error {
	denied, failed := false, false
	for _, o := range report.Objects {
		denied, failed = denied || o.Result == gate.Deny, failed || o.Result == gate.Error
	}
	switch {
	case denied:
		return command.Status(command.ExitDenied)
	case failed, report.Deletions != nil && report.Deletions.Incomplete():
		return command.Status(command.ExitError)
	case f.warnExit != 0 && (report.warns() || f.warnNoPass && report.Summary[evaluation.Pass] == 0):
		return command.Status(f.warnExit)
	}
	return nil
}

// warns reports whether a rule has a warning, or failed or could not be evaluated: where no object
// is denied, that was under audit.
func (r *applyReport) warns() bool {
	return r.Summary[evaluation.Warn]+r.Summary[evaluation.Fail]+r.Summary[evaluation.Error] > 0
}
