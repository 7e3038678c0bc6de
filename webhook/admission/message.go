package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// Reproduce returns a command that reproduces the denial of an image in a namespace; empty if there
// is none.
type Reproduce func(namespace string, image policy.Image) string

// denial describes all denied images, with the policies, the reasons and the fixes. If reproduce is
// not nil, it adds a command for the first of them. Blocked is as in review.Page.
func denial(title, blocked, namespace string, o *gate.Outcome, reproduce Reproduce) string {
	var p page
	p.Object(title, o, blocked)
	reported := map[policy.Reason]bool{}
	for i := range o.Rules {
		p.rule(o, &o.Rules[i], reported)
	}
	for _, reason := range o.Reasons {
		if reported[reason] {
			continue
		}
		word := review.Unverified
		if reason.Code == policy.Malformed {
			word = review.Denied
		}
		if whole := "the object as a whole: " + word; p.Head() != whole {
			p.Line(1, "%s", whole)
		}
		p.reason(ruleAgainst(o, reason), "", reason)
	}
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		if v.Result.Admits() {
			continue
		}
		p.verdict(o, v)
		if reproduce != nil {
			if command := reproduce(namespace, v.Image); command != "" {
				p.Line(2, "run: %s", review.Plain(command, review.MaxField))
			}
			reproduce = nil
		}
	}
	return p.Bounded(maxMessage)
}

// page is a denial of an object.
type page struct {
	review.Page
	// advise is set if the next reason is the first of its image, which includes a fix.
	advise bool
}

// rule adds the reasons of a rule about objects, and marks them as reported.
func (p *page) rule(o *gate.Outcome, r *policy.RuleResult, reported map[policy.Reason]bool) {
	if r.Kind == policy.ImageRule {
		return
	}
	for n, reason := range r.Ruling.Reasons {
		if !slices.Contains(o.Reasons, reason) {
			return // admitted despite the failure
		}
		if n == 0 {
			word := review.Denied
			if r.Ruling.Result != policy.Fail {
				word = review.Unverified
			}
			p.Line(1, "%s: %s", review.Rule(r.Policy, r.Rule), word)
			p.advise = true
		}
		reported[reason] = true
		if own := r.Policy.ID() + "/" + r.Rule; reason.Path == own {
			reason.Path = ""
		}
		p.reason("", "", reason)
	}
}

func (p *page) verdict(o *gate.Outcome, v *gate.Verdict) {
	p.Line(1, "%s, %s: %s", review.Place(v.Image), review.Plain(v.Image.Ref.Written(), review.MaxField), review.Word(v.Result))
	p.advise = true
	reported := map[policy.Reason]bool{}
	for _, reason := range v.Reasons {
		if reported[reason] {
			continue
		}
		for i := range v.Decisions {
			if d := &v.Decisions[i]; slices.Contains(d.Reasons, reason) && !admitted(d) {
				p.reason(review.RuleOf(d)+copiedFrom(d), d.Check.Entry, reason)
				reported[reason] = true
			}
		}
		if !reported[reason] {
			p.reason(ruleAgainst(o, reason), "", reason)
			reported[reason] = true
		}
	}
}

// reason adds a reason, with the entry of the rule and the path that it is about.
func (p *page) reason(rule, entry string, r policy.Reason) {
	path := ""
	if r.Path != entry {
		path = review.Plain(r.Path, review.MaxField)
	}
	advice := ""
	if p.advise || r.Hint != "" {
		advice = review.Fix(r)
	}
	p.advise = false
	p.Reason(r, advice, rule, review.Plain(entry, review.MaxField), path)
}

// ruleAgainst returns the policy and the rule of a reason against the object as a whole. It is
// empty if there is none, or if the reason contains it.
func ruleAgainst(o *gate.Outcome, reason policy.Reason) string {
	for i := range o.Rules {
		if r := &o.Rules[i]; r.Policy != nil && slices.Contains(r.Ruling.Reasons, reason) {
			return review.Rule(r.Policy, r.Rule)
		}
	}
	return ""
}

// admitted reports whether a decision denies nothing.
func admitted(d *policy.Decision) bool {
	return d.Result == policy.Pass || d.Result == policy.Skipped || d.Check.Action.Admits()
}

// copiedFrom returns the source of a mirror's copy if the copy was evaluated under the source's name,
// else an empty text.
func copiedFrom(d *policy.Decision) string {
	if d.Check.Image.Copy.IsZero() {
		return ""
	}
	return ", as a copy of " + review.Plain(d.Check.Image.Ref.Written(), review.MaxField)
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
			add("", rule.Policy.Kind+", "+review.ByName(rule.Policy, rule.Rule), review.Unverified, rule.Err.Error())
		}
		if rule.Action == policy.Audit {
			continue
		}
		for _, reason := range rule.Ruling.Reasons {
			if slices.Contains(o.Warnings, reason) {
				add(ending(reason), rule.Policy.Kind+", "+review.ByName(rule.Policy, rule.Rule), word(rule.Ruling.Result), reason.Message)
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
					who := d.Check.Policy.Kind + copiedFrom(d) + ", " + review.ByName(d.Check.Policy, d.Check.Rule)
					add(ending(reason), v.Image.Container, v.Image.Ref.Written(), who, word(d.Result), reason.Message)
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

func word(result policy.Result) string {
	if result == policy.Indeterminate {
		return review.Unverified
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
	end = review.Plain(end, maxWarning/2)
	return review.Plain(text, maxWarning-len(end)) + end
}

// notesOf returns the audit notes of an outcome. They are few and deterministic.
func notesOf(o *gate.Outcome) audit {
	notes := audit{answer: string(o.Result), annotations: o.AuditAnnotations}
	if !o.Result.Admits() {
		notes.codes = review.Codes(o)
	}
	return notes
}
