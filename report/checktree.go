package report

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// decision grows one check: the rule, the image, the requirements and the outcome. A claim or a
// reason that no authority accounts for hangs on the check itself, so that none is lost.
func (g grower) decision(d policy.Decision) *branch {
	c := d.Check
	p := newPolicy(c.Policy)
	sign, tint := resultMark(d.Result)
	b := &branch{sign: sign, colour: tint, text: clean(p.String()) + ", rule " + clean(c.Rule) + ": " + resultWord(d)}
	b.add("as", clean(judgedAs(c)))
	b.add("source", clean(p.Source))
	b.add("hash", clean(p.Hash))
	b.add("entry", clean(c.Entry)+" ("+string(c.Action)+")")
	rest := &leftover{facts: newMarked(d.Facts), reasons: newMarked(advised(d.Reasons)), passed: d.Result == policy.Pass}
	rest.isJudged = slices.ContainsFunc(d.Reasons, func(r policy.Reason) bool { return r.Path != c.Entry })
	if d.Result != policy.Skipped {
		for i := range c.Requirements {
			g.requirement(b, &c.Requirements[i], c.Entry, rest.of(""))
		}
		for i := range c.Attestations {
			g.attestation(b, &c.Attestations[i], c.Entry, rest)
		}
		if c.Deny != nil {
			path := c.Entry + ".validate.deny"
			g.condition(b, "deny", c.Entry, path, rest.conditionAt(path))
		}
	}
	for _, f := range rest.facts.rest() {
		g.fact(b, f)
	}
	g.reasons(b, c.Entry, c.Entry, rest.reasons.rest())
	return b
}

func (g grower) attestation(b *branch, a *policy.Attestation, entry string, rest *leftover) {
	child := b.add("statement", "of type "+clean(a.PredicateType)+", "+clean(a.Path))
	for i := range a.Signers {
		g.requirement(child, &a.Signers[i], entry, rest.of(a.PredicateType))
	}
	if a.Condition != nil {
		g.condition(child, "condition", entry, a.Path, rest.conditionAt(a.Path))
	}
}

// condition grows a failed condition with its reasons.
func (g grower) condition(b *branch, label, entry, path string, reasons []policy.Reason) {
	child := b.add(label, clean(join(entry, path)))
	if len(reasons) > 0 {
		child.sign, child.colour = "✗", red
	}
	g.reasons(child, entry, join(entry, path), reasons)
}

// requirement grows a set of members.
func (g grower) requirement(b *branch, r *policy.Requirement, entry string, rest view) {
	child := b.add("signers", fmt.Sprintf("at least %d of %s, %s", r.Threshold, count(len(r.Members), "member"), clean(r.Name)))
	rest.isOnly, rest.explanation = len(r.Members) == 1, rest.explanationIn(r)
	for _, m := range r.Members {
		if m.Set != nil {
			g.requirement(child, m.Set, entry, rest)
			continue
		}
		g.authority(child, m.Authority, entry, rest)
	}
	g.reasons(child, entry, join(entry, r.Name), rest.tooFewAt(r.Name))
}

// authority grows one authority, with the claims that satisfied it or the reasons why it failed.
func (g grower) authority(b *branch, a *verify.Authority, entry string, rest view) {
	at := join(entry, a.Name)
	child := b.add(a.Kind(), clean(signersOf(a)))
	if child == nil {
		return
	}
	child.add("at", clean(at))
	for _, term := range terms(a) {
		child.add("requires", clean(term))
	}
	facts, reasons := rest.factsOf(a), rest.missesOf(a.Name)
	switch {
	case undecided(reasons):
		child.sign, child.colour = "?", yellow
	case len(reasons) > 0:
		child.sign, child.colour = "✗", red
	case len(facts) > 0 || rest.explanation == met:
		child.sign, child.colour = "✓", green
	default:
		child.sign, child.colour = "-", dim
	}
	if len(facts)+len(reasons) == 0 {
		child.add("", rest.explanation)
	}
	for _, f := range facts {
		g.fact(child, f)
	}
	g.reasons(child, entry, at, reasons)
}

// fact grows one verified claim.
func (g grower) fact(b *branch, f verify.Fact) {
	p := newProof(f)
	what := p.Role
	if p.PredicateType != "" {
		what += " of type " + clean(p.PredicateType)
	}
	child := b.add("verified", what+", "+p.Format+" format")
	if p.Signer.KeyFingerprint != "" {
		child.add("key", clean(p.Signer.KeyFingerprint))
	} else {
		child.add("signer", clean(p.Signer.String()))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Signer.Extensions)) {
		child.add("", clean(name+" = "+p.Signer.Extensions[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Annotations)) {
		child.add("annotated", clean(name+" = "+p.Annotations[name]))
	}
	if p.Digest != g.digest { // its index, or one of its platforms
		child.add("of", p.Digest.String())
	}
	child.add("evidence", clean(p.Found.String()))
	for _, entry := range p.LogEntries {
		child.add("log", logEntry(entry.LogID, entry.Index, entry.Time))
	}
	if !p.SignedAt.IsZero() {
		child.add("signed", p.signed())
	}
	if !p.ExpiresAt.IsZero() {
		child.add("until", p.ExpiresAt.Format(time.RFC3339))
	}
	for _, note := range p.Notes {
		child.add("noted", clean(note))
	}
}

func resultMark(r policy.Result) (string, colour) {
	switch r {
	case policy.Pass:
		return "✓", green
	case policy.Fail:
		return "✗", red
	case policy.Skipped:
		return "-", dim
	default:
		return "?", yellow
	}
}

// resultWord renders the result of a decision.
func resultWord(d policy.Decision) string {
	if effect(d) == EffectWarn {
		return string(d.Result) + ", only a warning"
	}
	return string(d.Result)
}
