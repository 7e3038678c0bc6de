package decisionlog

import (
	"cmp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify"
)

// Decisions returns the lines of a decision, one for each image. It adds one for the object where
// it has no images, matches rules, or has reasons or an override as a whole. It reads the object.
func Decisions(d report.Decided) []Decision {
	about := occasion(d)
	if d.Occasion.Undecided != "" {
		about.Undecided = cut(d.Occasion.Undecided, maxMessage)
		return []Decision{about}
	}
	o := &d.Outcome
	about.PolicySet, about.Trust, about.Mirrors = o.PolicyHash, o.TrustGeneration, o.MirrorHash
	about.Milliseconds, about.Requests = float64(o.Duration.Microseconds())/1000, o.Cost.Requests
	lines := make([]Decision, 0, len(o.Verdicts)+1)
	for i := range o.Verdicts {
		lines = append(lines, ofImage(about, &o.Verdicts[i]))
	}
	object := ofObject(about, o)
	if len(o.Verdicts) == 0 || len(object.Rules)+len(object.Reasons)+len(object.Warnings) > 0 {
		lines = append(lines, object)
	}
	return lines
}

// occasion returns the common fields of all lines of one object.
func occasion(d report.Decided) Decision {
	on := &d.Occasion
	made := Decision{
		Process: on.Process, Endpoint: on.Endpoint, UID: cut(on.UID, maxName), Operation: cut(on.Operation, maxName),
		User: cut(on.User, maxName), DryRun: on.DryRun, Allowed: on.Allowed, Shadow: on.Shadow, Object: d.Resource(),
	}
	r := &made.Object
	for _, text := range []*string{&r.APIVersion, &r.Kind, &r.Namespace, &r.Name, &r.UID} {
		*text = cut(*text, maxName)
	}
	if r.Owner != nil {
		owner := *r.Owner
		for _, text := range []*string{&owner.APIVersion, &owner.Kind, &owner.Name, &owner.UID} {
			*text = cut(*text, maxName)
		}
		r.Owner = &owner
	}
	made.Groups = on.Groups
	if len(on.Groups) > maxGroups || slices.ContainsFunc(on.Groups, func(g string) bool { return len(g) > maxName }) {
		made.Groups = nil
		for _, group := range first(on.Groups, maxGroups, &made.Omitted) {
			made.Groups = append(made.Groups, cut(group, maxName))
		}
	}
	return made
}

func ofImage(line Decision, v *gate.Verdict) Decision {
	line.Image = &Image{
		Container: cut(v.Image.Container, maxName), Written: cut(v.Image.Ref.Written(), maxName), Digest: v.Pinned.Digest().String(),
	}
	if v.Redirect != nil {
		line.Image.Mirror, line.Image.Target = cut(v.Redirect.Mirror, maxName), cut(v.Redirect.Target.String(), maxName)
	}
	line.Result = v.Result
	line.explain(v.Reasons, v.Warnings)
	if v.Override != nil {
		line.Override = v.Override.ID()
	}
	decisions := first(v.Decisions, maxRules, &line.Omitted)
	if len(decisions) > 0 {
		line.Rules = make([]Rule, 0, len(decisions))
	}
	for i := range decisions {
		line.Rules = append(line.Rules, ofCheck(&decisions[i], &line.Omitted))
	}
	return line
}

func ofCheck(d *policy.Decision, omitted *int) Rule {
	rule := newRule(d.Check.Policy, d.Check.Rule)
	rule.Entry, rule.Result, rule.Action = d.Check.Entry, d.Result, d.Check.Action
	if d.Check.Exception != nil {
		rule.Exception = cut(d.Check.Exception.ID(), maxName)
	}
	if d.Result != policy.Pass {
		rule.Reason = mostTelling(d.Reasons)
	}
	facts := first(d.Facts, maxProofs, omitted)
	if len(facts) > 0 {
		rule.Proofs = make([]Proof, 0, len(facts))
	}
	for i := range facts {
		rule.Proofs = append(rule.Proofs, ofFact(&facts[i]))
	}
	return rule
}

func ofFact(f *verify.Fact) Proof {
	found := report.Found{Repository: f.Origin.Repository.String(), Via: f.Origin.Via, Manifest: f.Origin.Manifest}
	proof := Proof{
		Role: string(f.Role), Format: string(f.Format), Subject: cut(f.Signer.Subject, maxName), Issuer: cut(f.Signer.Issuer, maxName),
		Key: f.Signer.KeyFingerprint, Where: found.String(),
	}
	if f.Statement != nil {
		proof.Type = cut(f.Statement.PredicateType, maxName)
	}
	if !f.SignedAt.IsZero() {
		proof.SignedAt, proof.TimeSource = f.SignedAt.UTC().Truncate(time.Microsecond), f.TimeSource
	}
	for _, entry := range f.Entries {
		proof.LogIndexes = append(proof.LogIndexes, entry.LogID+":"+strconv.FormatInt(entry.Index, 10))
	}
	return proof
}

func ofObject(line Decision, o *gate.Outcome) Decision {
	line.Result = o.Result
	line.explain(o.Reasons, o.Warnings)
	for i := range o.Rules {
		r := &o.Rules[i]
		if r.Policy == nil || r.Err == nil && !r.OfObject() && r.Exception == nil {
			continue
		}
		if len(line.Rules) == maxRules {
			line.Omitted++
			continue
		}
		line.Rules = append(line.Rules, ofRule(r))
	}
	return line
}

func ofRule(r *policy.RuleResult) Rule {
	rule := newRule(r.Policy, r.Rule)
	rule.Action, rule.Changed = r.Action, r.Changed
	if r.Exception != nil {
		rule.Exception = cut(r.Exception.ID(), maxName)
	}
	switch {
	case r.Err != nil:
		rule.Result, rule.Reason = policy.Indeterminate, &Reason{Code: policy.PolicyError, Message: cut(r.Err.Error(), maxMessage)}
	case r.Skip != "":
		rule.Result = policy.Skipped
	default:
		rule.Result = cmp.Or(r.Ruling.Result, policy.Pass)
		rule.Reason = mostTelling(r.Ruling.Reasons)
	}
	return rule
}

func newRule(p *policy.Policy, name string) Rule {
	return Rule{Policy: cut(p.ID(), maxName), Hash: p.Hash, Rule: cut(name, maxName), AuditedBy: cut(p.AuditedBy, maxName)}
}

func (d *Decision) explain(reasons, warnings []policy.Reason) {
	for _, r := range first(reasons, maxReasons, &d.Omitted) {
		d.Reasons = append(d.Reasons, newReason(r))
	}
	for _, r := range first(warnings, maxReasons, &d.Omitted) {
		d.Warnings = append(d.Warnings, newReason(r))
	}
}

func mostTelling(reasons []policy.Reason) *Reason {
	if len(reasons) == 0 {
		return nil
	}
	r := newReason(reasons[0])
	return &r
}

func newReason(r policy.Reason) Reason {
	return Reason{Code: r.Code, Message: cut(r.Message, maxMessage), Expected: cut(r.Expected, maxMessage), Found: cut(r.Found, maxMessage)}
}

// first returns at most so many elements, and counts the others.
func first[T any](list []T, most int, omitted *int) []T {
	if len(list) <= most {
		return list
	}
	*omitted += len(list) - most
	return list[:most]
}

// cut truncates a text to so many bytes, and appends the number of the omitted ones.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "... (" + strconv.Itoa(len(text)-end) + " more bytes)"
}
