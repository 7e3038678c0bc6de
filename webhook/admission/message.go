package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Words for the answers. A failed verification and a denial always have different words.
const (
	wordDenied = "denied"
	wordUnable = "could not be verified"
)

// Reproduce returns a command that reproduces the denial of an image in a namespace; empty if there
// is none.
type Reproduce func(namespace string, image policy.Image) string

// denial describes all denied images, with the policies, the reasons and the fixes. If reproduce is
// not nil, it adds a command for the first of them.
func denial(title, namespace string, o *gate.Outcome, reproduce Reproduce) string {
	var p page
	var denied, unable int
	for i := range o.Verdicts {
		switch o.Verdicts[i].Result {
		case gate.Allow:
		case gate.Error:
			unable++
		default:
			denied++
		}
	}
	p.line(0, "%s: %s", title, summary(len(o.Verdicts), denied, unable, o.Result))
	told := map[policy.Reason]bool{}
	for i := range o.Rules {
		p.rule(o, &o.Rules[i], told)
	}
	for _, reason := range o.Reasons {
		if told[reason] {
			continue
		}
		word := wordUnable
		if reason.Code == policy.Malformed {
			word = wordDenied
		}
		if whole := "the object as a whole: " + word; !p.begins(whole) {
			p.line(1, "%s", whole)
		}
		p.reason(ruleAgainst(o, reason), "", reason)
	}
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		if v.Result == gate.Allow {
			continue
		}
		p.verdict(o, v)
		if reproduce != nil {
			if command := reproduce(namespace, v.Image); command != "" {
				p.line(2, "run: %s", plain(command, maxField))
			}
			reproduce = nil
		}
	}
	return p.bounded(maxMessage)
}

// summary counts the images by result, or returns the result of an object without denied images.
func summary(all, denied, unable int, answer gate.Result) string {
	of := fmt.Sprintf("of %d images ", all)
	if all == 1 {
		of = "of 1 image "
	}
	switch {
	case denied > 0 && unable > 0:
		return fmt.Sprintf("%d %s%s, %d %s", denied, of, wordDenied, unable, wordUnable)
	case denied > 0:
		return fmt.Sprintf("%d %s%s", denied, of, wordDenied)
	case unable > 0:
		return fmt.Sprintf("%d %s%s", unable, of, wordUnable)
	}
	if answer == gate.Deny {
		return wordDenied
	}
	return wordUnable
}

// page is a text of lines, some of which begin with an image.
type page struct {
	lines []string
	heads []bool
	// advise is set if the next reason is the first of its image, which includes a fix.
	advise bool
}

func (p *page) line(depth int, format string, args ...any) {
	p.lines = append(p.lines, strings.Repeat("  ", depth)+fmt.Sprintf(format, args...))
	p.heads = append(p.heads, depth == 1)
}

// begins reports whether the last head is this text.
func (p *page) begins(head string) bool {
	for i, isHead := range slices.Backward(p.heads) {
		if isHead {
			return strings.TrimSpace(p.lines[i]) == head
		}
	}
	return false
}

// rule adds the reasons of a rule about objects, and marks them in told.
func (p *page) rule(o *gate.Outcome, r *policy.RuleResult, told map[policy.Reason]bool) {
	if r.Kind == policy.ImageRule {
		return
	}
	for n, reason := range r.Ruling.Reasons {
		if !slices.Contains(o.Reasons, reason) {
			return // admitted despite the failure
		}
		if n == 0 {
			word := wordDenied
			if r.Ruling.Result != policy.Fail {
				word = wordUnable
			}
			p.line(1, "%s, rule %s: %s", plain(r.Policy.ID(), maxField), plain(r.Rule, maxField), word)
			p.advise = true
		}
		told[reason] = true
		if own := r.Policy.ID() + "/" + r.Rule; reason.Path == own {
			reason.Path = ""
		}
		p.reason("", "", reason)
	}
}

func (p *page) verdict(o *gate.Outcome, v *gate.Verdict) {
	word := wordDenied
	if v.Result == gate.Error {
		word = wordUnable
	}
	p.line(1, "%s %s, %s: %s", v.Image.Role, plain(v.Image.Container, maxField), plain(v.Image.Ref.Written(), maxField), word)
	p.advise = true
	told := map[policy.Reason]bool{}
	for _, reason := range v.Reasons {
		if told[reason] {
			continue
		}
		for i := range v.Decisions {
			if d := &v.Decisions[i]; slices.Contains(d.Reasons, reason) && !admitted(d) {
				p.reason(ruleOf(d)+judged(d), d.Check.Entry, reason)
				told[reason] = true
			}
		}
		if !told[reason] {
			p.reason(ruleAgainst(o, reason), "", reason)
			told[reason] = true
		}
	}
}

// ruleAgainst returns the policy and the rule of a reason against the object as a whole. It is
// empty if there is none, or if the reason contains it.
func ruleAgainst(o *gate.Outcome, reason policy.Reason) string {
	for i := range o.Rules {
		if r := &o.Rules[i]; r.Policy != nil && slices.Contains(r.Ruling.Reasons, reason) {
			return plain(r.Policy.ID(), maxField) + ", rule " + plain(r.Rule, maxField)
		}
	}
	return ""
}

// admitted reports whether a decision denies nothing.
func admitted(d *policy.Decision) bool {
	return d.Result == policy.Pass || d.Result == policy.Skipped || d.Check.Action.Admits()
}

// ruleOf returns the policy and the rule of a decision.
func ruleOf(d *policy.Decision) string {
	if d.Check.Policy == nil {
		return plain(d.Check.Rule, maxField)
	}
	return plain(d.Check.Policy.ID(), maxField) + ", rule " + plain(d.Check.Rule, maxField)
}

// judged returns the source of a mirror's copy if the copy was evaluated under the source's name,
// else an empty text.
func judged(d *policy.Decision) string {
	if d.Check.Image.Copy.IsZero() {
		return ""
	}
	return ", as a copy of " + plain(d.Check.Image.Ref.Written(), maxField)
}

func (p *page) reason(rule, entry string, r policy.Reason) {
	where := []string{rule, plain(entry, maxField)}
	if r.Path != entry {
		where = append(where, plain(r.Path, maxField))
	}
	where = slices.DeleteFunc(where, func(s string) bool { return s == "" })
	text := fmt.Sprintf("%s [%s]", plain(r.Message, maxField), r.Code)
	if len(where) > 0 {
		text = strings.Join(where, ", ") + ": " + text
	}
	p.line(2, "%s", text)
	next := r.Hint
	if next == "" && p.advise {
		next = report.Hint(r.Code)
	}
	p.advise = false
	for _, detail := range []struct{ label, text string }{{"expected", r.Expected}, {"found", r.Found}, {"next", next}} {
		if detail.text != "" {
			p.line(3, "%s: %s", detail.label, plain(detail.text, maxField))
		}
	}
}

// bounded joins whole lines up to most bytes, and counts the omitted ones.
func (p *page) bounded(most int) string {
	const tail = 40 // for the line with the count
	size, fit := 0, 0
	for fit < len(p.lines) && size+len(p.lines[fit])+1 <= most-tail {
		size += len(p.lines[fit]) + 1
		fit++
	}
	if fit == len(p.lines) {
		return strings.Join(p.lines, "\n")
	}
	left := 0
	for _, head := range p.heads[fit:] {
		if head {
			left++
		}
	}
	last := fmt.Sprintf("  ... and %d more lines", len(p.lines)-fit)
	if left > 0 {
		last = fmt.Sprintf("  ... and %d more images", left)
	}
	return strings.Join(append(slices.Clone(p.lines[:fit]), last), "\n")
}

// warnings returns a warning for each failure that was admitted: under a policy that warns, or one
// that admits images that could not be verified. Audited failures produce no warning; they are for
// the policy's owners.
func warnings(o *gate.Outcome) []string {
	var found []string
	add := func(end string, parts ...string) {
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		if text := warningWith(end, strings.Join(parts, ": ")); !slices.Contains(found, text) {
			found = append(found, text)
		}
	}
	for _, rule := range o.Rules {
		path := rule.Policy.ID() + "/" + rule.Rule
		admitted := slices.ContainsFunc(o.Warnings, func(r policy.Reason) bool { return r.Path == path })
		if rule.Err != nil && admitted && !rule.Policy.AuditOnly {
			add("", rule.Policy.ID()+", rule "+rule.Rule, wordUnable, rule.Err.Error())
		}
		if rule.Action == policy.Audit {
			continue
		}
		for _, reason := range rule.Ruling.Reasons {
			if slices.Contains(o.Warnings, reason) {
				add(ending(reason), rule.Policy.ID()+", rule "+rule.Rule, doubt(rule.Ruling.Result), reason.Message)
			}
		}
	}
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		silent := map[policy.Reason]bool{}
		for j := range v.Decisions {
			d := &v.Decisions[j]
			for _, reason := range d.Reasons {
				if d.Check.Action == policy.Audit {
					silent[reason] = true
				}
				if slices.Contains(v.Warnings, reason) && d.Check.Action != policy.Audit && d.Result != policy.Pass {
					silent[reason] = true
					add(ending(reason), v.Image.Container, v.Image.Ref.Written(), ruleOf(d)+judged(d), doubt(d.Result), reason.Message)
				}
			}
		}
		for _, reason := range v.Warnings {
			if !silent[reason] {
				add(ending(reason), v.Image.Container, v.Image.Ref.Written(), reason.Message)
			}
		}
	}
	if len(found) > maxWarnings {
		more := len(found) - maxWarnings + 1
		found = append(found[:maxWarnings-1], fmt.Sprintf("... and %d more warnings", more))
	}
	return found
}

func doubt(result policy.Result) string {
	if result == policy.Indeterminate {
		return wordUnable
	}
	return ""
}

// ending returns the end of a warning, which is never truncated.
func ending(r policy.Reason) string {
	code := " [" + string(r.Code) + "]"
	if r.Code == policy.MirrorDiffers && r.Expected != "" && r.Found != "" {
		return " (used " + short(r.Expected) + ", there " + short(r.Found) + ")" + code
	}
	return code
}

// short truncates a digest: a warning cannot hold two full ones.
func short(digest string) string {
	const enough = len("sha256:") + 12
	return digest[:min(len(digest), enough)]
}

// warning sanitises a text for an HTTP header.
func warning(text string) string { return warningWith("", text) }

// warningWith is a warning with a short end that is never truncated.
func warningWith(end, text string) string {
	end = plain(end, maxWarning/2)
	return plain(text, maxWarning-len(end)) + end
}

// notesOf returns the audit notes of an outcome. They are few and deterministic.
func notesOf(o *gate.Outcome) audit {
	notes := audit{answer: string(o.Result), words: o.AuditAnnotations}
	if o.Result == gate.Allow {
		return notes
	}
	codes := map[string]bool{}
	for _, reason := range o.Reasons {
		codes[string(reason.Code)] = true
	}
	for i := range o.Verdicts {
		if v := &o.Verdicts[i]; v.Result != gate.Allow && len(v.Reasons) > 0 {
			codes[string(v.Reasons[0].Code)] = true
		}
	}
	notes.codes = strings.Join(slices.Sorted(maps.Keys(codes)), ",")
	return notes
}

// plain sanitises untrusted text for one line: without control characters, and of bounded length in
// bytes.
func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	const mark = "..."
	cut := most - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}
