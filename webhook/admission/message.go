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

// Words for the answers. Could-not-look is never the same as no.
const (
	wordDenied = "denied"
	wordUnable = "could not be verified"
)

// Reproduce returns a command that shows how an image of a namespace came to be
// refused; empty if there is none.
type Reproduce func(namespace string, image policy.Image) string

// denial says of all images at once which are refused, by whom, why, and what to
// do: for the first of them a command, if reproduce is not nil.
func denial(title, namespace string, o *gate.Outcome, reproduce Reproduce) string {
	var p page
	var denied, unable int
	for i := range o.Verdicts {
		switch o.Verdicts[i].Answer {
		case gate.Allow:
		case gate.Unable:
			unable++
		default:
			denied++
		}
	}
	p.line(0, "%s: %s", title, summary(len(o.Verdicts), denied, unable, o.Answer))
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
		if v.Answer == gate.Allow {
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

// summary counts, or says what became of an object that no image speaks against.
func summary(all, denied, unable int, answer gate.Answer) string {
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
	// advise: the next reason is the most telling of its image, and says what to
	// do.
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

// rule says what a rule about objects holds against the object, and notes what was
// told.
func (p *page) rule(o *gate.Outcome, r *policy.RuleResult, told map[policy.Reason]bool) {
	if r.Kind == policy.ImageRule {
		return
	}
	for n, reason := range r.Ruling.Reasons {
		if !slices.Contains(o.Reasons, reason) {
			return // what is admitted all the same
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
	if v.Answer == gate.Unable {
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

// ruleAgainst names the policy and the rule that hold a reason against the object as a
// whole; empty where none does, or the reason names it.
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

// ruleOf names the policy and the rule of a decision.
func ruleOf(d *policy.Decision) string {
	if d.Check.Policy == nil {
		return plain(d.Check.Rule, maxField)
	}
	return plain(d.Check.Policy.ID(), maxField) + ", rule " + plain(d.Check.Rule, maxField)
}

// judged names the source under whose name a mirror's copy was judged; empty for
// what was judged by its own.
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

// bounded joins whole lines up to most bytes, and counts what is left out.
func (p *page) bounded(most int) string {
	const tail = 40 // for the line that counts
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

// warnings tell who asks what was admitted in spite of a failure: under a policy
// that warns, or one that admits what could not be verified. What a policy only
// audits is for its owners.
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
	if result == policy.Undecided {
		return wordUnable
	}
	return ""
}

// ending is what a warning says behind the reason's message, however long that is.
func ending(r policy.Reason) string {
	code := " [" + string(r.Code) + "]"
	if r.Code == policy.MirrorDiffers && r.Expected != "" && r.Found != "" {
		return " (used " + short(r.Expected) + ", there " + short(r.Found) + ")" + code
	}
	return code
}

// short is the beginning of a digest: a warning has no room for two.
func short(digest string) string {
	const enough = len("sha256:") + 12
	return digest[:min(len(digest), enough)]
}

// warning makes a text fit for an HTTP header.
func warning(text string) string { return warningWith("", text) }

// warningWith is a warning with a short end, which is never cut off.
func warningWith(end, text string) string {
	end = plain(end, maxWarning/2)
	return plain(text, maxWarning-len(end)) + end
}

// notesOf are few, and the same for the same outcome.
func notesOf(o *gate.Outcome) audit {
	notes := audit{answer: string(o.Answer), words: o.AuditAnnotations}
	if o.Answer == gate.Allow {
		return notes
	}
	codes := map[string]bool{}
	for _, reason := range o.Reasons {
		codes[string(reason.Code)] = true
	}
	for i := range o.Verdicts {
		if v := &o.Verdicts[i]; v.Answer != gate.Allow && len(v.Reasons) > 0 {
			codes[string(v.Reasons[0].Code)] = true
		}
	}
	notes.codes = strings.Join(slices.Sorted(maps.Keys(codes)), ",")
	return notes
}

// plain makes a text that somebody else wrote fit for one line: without control
// characters, and of at most so many bytes.
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
