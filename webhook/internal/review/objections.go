package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// maxObjections bounds the listed objections, and maxListed their bytes after the first: a denial has
// more of each below.
const maxObjections, maxListed = 20, 1024

// Objection is a rule's reason for a denial, with the rule's own message in one line.
type Objection struct {
	Policy        *policy.Policy
	Rule, Message string
}

// String returns the objection in the form of Kyverno's warnings, which scripts search for.
func (o Objection) String() string { return ByName(o.Policy, o.Rule) + ": " + o.Message }

// ByName names a policy and a rule as Kyverno's warnings do.
func ByName(p *policy.Policy, rule string) string {
	return "policy " + Plain(p.Name, MaxField) + "." + Plain(rule, MaxField)
}

// Objections returns the objections to an object and its denied images, each once.
func Objections(o *gate.Outcome) []Objection {
	var found []Objection
	add := func(p *policy.Policy, rule string, reasons []policy.Reason, denies func(policy.Reason) bool) {
		for _, r := range reasons {
			one := Objection{Policy: p, Rule: rule, Message: Plain(r.Message, MaxField)}
			if p != nil && len(found) < maxObjections && denies(r) && !slices.Contains(found, one) {
				found = append(found, one)
			}
		}
	}
	all := slices.Clone(o.Reasons) // that deny
	for i := range o.Verdicts {
		if v := &o.Verdicts[i]; !v.Result.Admits() {
			all = append(all, v.Reasons...)
		}
	}
	for i := range o.Rules {
		r := &o.Rules[i]
		if r.Policy != nil && r.Err != nil {
			add(r.Policy, r.Rule, all, func(reason policy.Reason) bool { return reason.Path == r.Policy.ID()+"/"+r.Rule })
		}
		if !r.Action.Admits() {
			add(r.Policy, r.Rule, r.Ruling.Reasons, func(reason policy.Reason) bool { return slices.Contains(all, reason) })
		}
	}
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		if v.Result.Admits() {
			continue
		}
		for j := range v.Decisions {
			if d := &v.Decisions[j]; d.Result != policy.Pass && d.Result != policy.Skipped && !d.Check.Action.Admits() {
				add(d.Check.Policy, d.Check.Rule, d.Reasons, func(reason policy.Reason) bool { return slices.Contains(v.Reasons, reason) })
			}
		}
	}
	return found
}

// Object adds the object's line, and below it the objections. Blocked is the name of the object in
// Kyverno's words; if it is not empty, the objections are added in these words as well.
func (p *Page) Object(title string, o *gate.Outcome, blocked string) {
	p.Line(0, "%s: %s", title, Head(o))
	objections := Objections(o)
	size := 0
	listed := slices.IndexFunc(objections, func(one Objection) bool {
		size += len(one.String())
		return size > maxListed && size > len(one.String())
	})
	if listed >= 0 {
		objections = objections[:listed]
	}
	for _, one := range objections {
		p.add(false, "  "+one.String())
	}
	if blocked == "" || len(objections) == 0 {
		return
	}
	p.Line(0, "\nresource %s was blocked due to the following policies\n", Plain(blocked, MaxField))
	for i, first := range objections {
		isOf := func(one Objection) bool { return one.Policy == first.Policy }
		if slices.IndexFunc(objections, isOf) < i {
			continue
		}
		p.Line(0, "%s:", Plain(first.Policy.Name, MaxField))
		for _, one := range objections[i:] {
			if isOf(one) {
				p.add(false, fmt.Sprintf("  %s: '%s'", Plain(one.Rule, MaxField), strings.ReplaceAll(one.Message, "'", "''")))
			}
		}
	}
	p.Line(0, "")
}

// Head is the summary with the first denied image and the number of the others: lists of events
// show the first line alone.
func Head(o *gate.Outcome) string {
	text, more := "", 0
	for i := range o.Verdicts {
		switch v := &o.Verdicts[i]; {
		case v.Result.Admits():
		case text == "":
			text = ": " + Plain(v.Image.Ref.Written(), MaxField)
		default:
			more++
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return Summary(o) + text
}

// Place names the container of an image, or the place that an extractor found it at.
func Place(i policy.Image) string {
	text := i.Role + " " + Plain(i.Container, MaxField)
	if i.Role == string(workload.Custom) {
		text += " at " + Plain(i.Pointer, MaxField)
	}
	return text
}
