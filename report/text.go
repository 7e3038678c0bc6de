package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// TextOptions configure the layout of a text. The zero value is plain, 80 columns wide and
// deterministic.
type TextOptions struct {
	// Color allows ANSI colours. The caller handles NO_COLOR and the detection of terminals.
	Color bool
	// Width is the width of the page, limited to 40 to 120; 0 means 80.
	Width int
	// Verbose adds exact names, evidence, costs and durations, and every reason.
	Verbose bool
	// Reproduce returns one command that reproduces the image's verdict, with its arguments
	// quoted for a shell; nil or "" leaves it out.
	Reproduce func(Record, Image) string
}

// Columns of a text.
const (
	detailIndent = 4  // of a detail under an image
	labelWidth   = 10 // of a detail's label
	maxContainer = 4  // of the column of containers, as a part of the page
)

// Text writes the output for users. It has a block for each object with a row for each image.
// Under a denial it shows the failed requirement, the policy, the reason and the fix. The summary
// is the last line.
func Text(w io.Writer, outcomes []gate.Outcome, options TextOptions) error {
	t := text{page: page{coloured: options.Color, width: pageWidth(options.Width)}, options: options}
	list := NewList(outcomes)
	for _, record := range list.Items {
		t.object(record)
		t.line("")
	}
	if options.Verbose {
		t.snapshots(list.Items)
	}
	for _, line := range wrap(list.Summary.String(), t.width) {
		t.line(t.paint(bold, line))
	}
	if _, err := io.WriteString(w, t.String()); err != nil {
		return fmt.Errorf("write verdicts as text: %w", err)
	}
	return nil
}

type text struct {
	page
	options TextOptions
}

// object writes a heading, and the images below it.
func (t *text) object(r Record) {
	if !r.isBare() {
		for i, line := range wrap(r.Object.title(), t.width-2) {
			t.line(strings.Repeat(" ", 2*min(i, 1)) + t.paint(bold, line))
		}
	}
	container := 0
	for _, v := range r.Images {
		if place := columns(v.place()); place <= t.width/maxContainer {
			container = max(container, place)
		}
	}
	if r.isBare() {
		container = 0
	}
	worst := gate.Unchecked
	for _, v := range r.Images {
		t.image(r, v, container)
		worst = gate.First(worst, v.Result)
	}
	t.whole(r, worst)
}

// whole writes the parts of the object that belong to no single image.
func (t *text) whole(r Record, worst gate.Result) {
	switch {
	case !r.Result.Admits() && r.Result != worst:
		t.row(r.Result, "", 0, "the object as a whole")
	case len(r.Reasons) > 0:
		t.row(gate.Error, "", 0, "the object as a whole")
	case r.unmatched:
		t.row(r.Result, "", 0, "no policy matches this document")
	case r.spoken() > 0:
		t.row(r.Result, "", 0, count(r.spoken(), "rule")+" about the object")
	case len(r.Images) == 0:
		t.row(r.Result, "", 0, "no images")
	}
	t.reasons("", r.Reasons)
	for _, warning := range r.Warnings {
		t.detail(yellow, "warning", r.admission(warning))
		t.reasons("", []policy.Reason{warning})
	}
	if t.options.Verbose && len(r.Images) > 1 {
		t.detail(dim, "in all", r.Cost.String()+", "+duration(r.DurationMilliseconds))
	}
}

// resultWidth is the width of the longest result.
const resultWidth = len(gate.Unchecked)

// row writes the main line of an image: mark, answer, place, image.
func (t *text) row(result gate.Result, place string, width int, name string) {
	sign, c := mark(result)
	head := t.paint(c, sign+" "+pad(string(result), resultWidth))
	indent := 2 + 2 + resultWidth + 2
	if width > 0 {
		place = pad(clean(place), width) + "  "
		indent += columns(place)
		if columns(place) > width+2 { // a long name has a line of its own
			for i, line := range wrap(place, t.width-indent+columns(place)) {
				if i > 0 {
					head = strings.Repeat(" ", 2+resultWidth)
				}
				t.line("  " + head + "  " + line)
			}
			head, place = strings.Repeat(" ", 2+resultWidth), strings.Repeat(" ", width+2)
			indent = 2 + 2 + resultWidth + 2 + width + 2
		}
	} else {
		place = ""
	}
	for i, line := range wrap(clean(name), t.width-indent) {
		if i == 0 {
			t.line("  " + head + "  " + place + t.paint(bold, line))
			continue
		}
		t.line(strings.Repeat(" ", indent) + t.paint(bold, line))
	}
}

// image writes one image's row and what belongs to it.
func (t *text) image(r Record, v Image, width int) {
	t.row(v.Result, v.place(), width, v.Written)
	if t.options.Verbose {
		if v.Reference != v.Written {
			t.detail(dim, "name", clean(v.Reference))
		}
		t.detail(dim, "exactly", clean(v.Pinned))
	} else {
		t.detail(dim, "digest", v.Digest.String())
	}
	if v.Position != nil && (!v.Result.Admits() || len(v.Warnings) > 0 || t.options.Verbose) {
		t.detail(dim, "where", clean(v.Position.String()))
	}
	t.mirror(v)
	told := map[policy.Reason]bool{}
	for _, effect := range []Effect{EffectDeny, EffectError, EffectAllow, EffectWarn} {
		for _, d := range v.Decisions {
			if d.Effect != effect {
				continue
			}
			t.decision(d)
			for _, reason := range d.Reasons {
				told[reason] = true
			}
		}
	}
	for _, reason := range v.Reasons {
		if !told[reason] && !v.Mirror.isTold(reason) {
			t.reasons("", []policy.Reason{reason})
		}
	}
	for _, warning := range v.Warnings {
		if !told[warning] && !v.Mirror.isTold(warning) {
			t.detail(yellow, "warning", "of the image, not denied")
			t.reasons("", []policy.Reason{warning})
		}
	}
	if !v.Result.Admits() && t.options.Reproduce != nil {
		t.command(t.options.Reproduce(r, v))
	}
	if t.options.Verbose {
		t.detail(dim, "cost", v.Cost.String()+", "+duration(v.DurationMilliseconds))
	}
}

// decision writes the policy of a decision, and the reasons.
func (t *text) decision(d Decision) {
	who := clean(d.Policy.String()) + ", rule " + clean(d.Rule)
	if d.JudgedAs != "" {
		who += ", judged as " + clean(d.JudgedAs)
	}
	switch d.Effect {
	case EffectAllow:
		for _, reason := range d.Reasons {
			verb := ""
			if d.Result == policy.Skipped {
				verb = "skipped: "
			}
			t.detail(dim, "why", verb+clean(reason.Message)+" ("+who+")")
		}
	case EffectWarn:
		t.detail(yellow, "warning", who+" ("+admission(d.Action)+")")
		t.reasons(d.Entry, d.Reasons)
	default:
		t.detail(dim, "policy", who)
		t.reasons(d.Entry, d.Reasons)
	}
	if t.options.Verbose {
		for _, proof := range d.Proofs {
			t.detail(dim, "proof", proof.String())
		}
	}
}

// admission returns why a failure does not deny.
func admission(action policy.Action) string {
	if action.Admits() {
		return "audit only, not denied"
	}
	return "could not be verified, admitted by failurePolicy Ignore"
}

// admission returns why a warning about the object does not deny.
func (r Record) admission(warning policy.Reason) string {
	for _, rule := range r.Rules {
		if slices.Contains(rule.Reasons, warning) {
			return clean(rule.Policy.String()) + ", rule " + clean(rule.Rule) + " (" + admission(rule.Action) + ")"
		}
	}
	return "could not be evaluated, not denied (audit only, or failurePolicy Ignore)"
}

// whereLabel is the label of a reason's location: a path in the object, or that of evidence.
func whereLabel(r policy.Reason) string {
	if strings.HasPrefix(r.Where, "/") {
		return "path"
	}
	return "evidence"
}

// reasons writes the nearest misses, and the fix for the first of them.
func (t *text) reasons(entry string, reasons []policy.Reason) {
	at := ""
	var last policy.Reason
	for i, r := range reasons {
		if i == maxReasons && !t.options.Verbose {
			t.detail(dim, "", fmt.Sprintf("and %s; quaymaster explain shows all", count(len(reasons)-i, "more reason")))
			break
		}
		if i > 0 && isSameMiss(r, last) { // of other evidence
			t.detail(dim, whereLabel(r), clean(r.Where))
			continue
		}
		last = r
		if path := clean(join(entry, r.Path)); path != at {
			t.detail(dim, "at", path)
			at = path
		}
		t.detail(plain, "why", clean(r.Message)+" ["+clean(string(r.Code))+"]")
		t.detail(dim, "expected", clean(r.Expected))
		t.detail(dim, "found", clean(r.Found))
		t.detail(dim, whereLabel(r), clean(r.Where))
	}
	if len(reasons) > 0 {
		t.detail(dim, "next", clean(reasons[0].Hint))
	}
}

// isSameMiss reports whether two reasons differ only in their evidence.
func isSameMiss(a, b policy.Reason) bool {
	a.Where, b.Where = "", ""
	return a == b
}

// detail writes a label and a value under an image, and nothing for an empty value. clean has
// already bounded untrusted text in the value.
func (t *text) detail(c colour, label, value string) {
	if value == "" {
		return
	}
	for i, line := range wrap(escape(value), t.width-detailIndent-labelWidth) {
		shown := ""
		if i == 0 {
			shown = label
		}
		t.line(strings.Repeat(" ", detailIndent) + t.paint(c, pad(shown, labelWidth)) + line)
	}
}

// command writes a command so that it can be copied.
func (t *text) command(command string) {
	if command == "" {
		return
	}
	for i, line := range wrapCommand(escape(command), t.width-detailIndent-labelWidth) {
		label := ""
		if i == 0 {
			label = "try"
		}
		t.line(strings.Repeat(" ", detailIndent) + t.paint(dim, pad(label, labelWidth)) + line)
	}
}

// snapshots writes the distinct configurations of the evaluations.
func (t *text) snapshots(records []Record) {
	seen := map[string]bool{}
	for _, r := range records {
		for _, line := range []string{"policies " + clean(r.PolicySetHash), "trust " + clean(r.TrustGeneration), "mirrors " + clean(r.MirrorSetHash)} {
			if !seen[line] && (r.MirrorSetHash != "" || !strings.HasPrefix(line, "mirrors ")) {
				seen[line] = true
				for _, part := range wrap(line, t.width) {
					t.line(t.paint(dim, part))
				}
			}
		}
	}
}
