package vsa

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// Verifier identifies the verifier and its policies.
type Verifier struct {
	// ID is the URI of the verifier. Consumers of its summaries configure it together with its
	// key.
	ID string
	// Release of quaymaster; may be empty.
	Release string
	// Policy is a URI of the policies' origin; empty for urn:quaymaster:policies. Their digest is
	// in the summary, too.
	Policy string
	// Time is the time of the verification.
	Time time.Time
}

// defaultPolicy identifies policies without a configured origin.
const defaultPolicy = "urn:quaymaster:policies"

// Left is an image without a summary, with the reason.
type Left struct {
	Image string
	Why   string
}

// check rejects a verifier without a valid identity.
func (v Verifier) check() error {
	switch {
	case !isURI(v.ID):
		return fmt.Errorf("the verifier's id %q is no URI: want one such as https://ci.example/verifier", v.ID)
	case v.Policy != "" && !isURI(v.Policy):
		return fmt.Errorf("the policy's name %q is no URI: want one such as https://git.example/policies", v.Policy)
	case v.Time.IsZero():
		return errors.New("the time of verification is empty")
	}
	return nil
}

// isURI reports whether the text is an absolute URI of RFC 3986.
func isURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "" || u.Path != "") && !strings.ContainsAny(text, " \t\n\r")
}

// Summaries returns a summary of each image in the outcomes, in their order, and the images
// without one. Of one image in several objects, the worst result is used: a failure, then the
// absence of a summary.
func (v Verifier) Summaries(outcomes []gate.Outcome) ([]Summary, []Left, error) {
	if err := v.check(); err != nil {
		return nil, nil, err
	}
	book := map[string]*entry{}
	var order []*entry
	for i := range outcomes {
		for j := range outcomes[i].Verdicts {
			made := v.entry(&outcomes[i], &outcomes[i].Verdicts[j])
			before, ok := book[made.key()]
			if !ok {
				book[made.key()] = &made
				order = append(order, &made)
				continue
			}
			before.merge(made)
		}
	}
	var summaries []Summary
	var left []Left
	for _, e := range order {
		if e.why != "" {
			left = append(left, Left{Image: e.name, Why: e.why})
			continue
		}
		summaries = append(summaries, e.summary())
	}
	return summaries, left, nil
}

// entry is the result for one image.
type entry struct {
	name      string
	pinned    image.Pinned // under its own name
	passed    bool
	why       string // the reason why there is no summary
	level     int    // of the build track; 0: not evaluated
	predicate predicate
}

func (e *entry) key() string {
	if e.pinned.IsZero() {
		return e.name
	}
	return e.pinned.Repository().String() + "@" + e.pinned.Digest().String()
}

// merge adds the result for the image in another object.
func (e *entry) merge(other entry) {
	failed := func(e *entry) bool { return e.why == "" && !e.passed }
	switch {
	case failed(e):
	case failed(&other), e.why == "" && other.why != "":
		*e = other
	case e.why == "":
		e.join(other)
	}
}

// join joins two passes: with the evidence of both, and the lower level.
func (e *entry) join(other entry) {
	if other.level < e.level {
		e.level, e.predicate.VerifiedLevels = other.level, other.predicate.VerifiedLevels
	}
	if e.predicate.InputAttestations == nil || other.predicate.InputAttestations == nil {
		e.predicate.InputAttestations = nil // incomplete
		return
	}
	e.predicate.InputAttestations = inputs(e.predicate.InputAttestations, other.predicate.InputAttestations)
}

func (e *entry) summary() Summary {
	return Summary{Image: e.pinned, Passed: e.passed, statement: newStatement(e.pinned, e.predicate)}
}

func (v Verifier) entry(o *gate.Outcome, verdict *gate.Verdict) entry {
	own, mirror := names(verdict)
	e := entry{name: verdict.Image.Ref.Written(), pinned: own}
	e.passed, e.why = resultOf(o, verdict)
	if e.why != "" {
		return e
	}
	e.predicate = predicate{
		Verifier: verifier{ID: v.ID}, TimeVerified: v.Time.UTC().Truncate(time.Second), ResourceURI: ResourceURI(own.Repository()),
		Policy:         descriptor{URI: v.Policy, Digest: map[string]string{"sha256": o.PolicyHash}},
		VerifiedLevels: []string{Failed}, VerificationResult: Failed, SLSAVersion: Version, Mirror: mirror,
	}
	if v.Release != "" {
		e.predicate.Verifier.Version = map[string]string{"quaymaster": v.Release}
	}
	if v.Policy == "" {
		e.predicate.Policy.URI = defaultPolicy
	}
	if e.passed {
		e.level = levelOf(verdict)
		e.predicate.VerificationResult, e.predicate.VerifiedLevels = Passed, []string{levelName(e.level)}
		e.predicate.InputAttestations = evidenceOf(verdict)
	}
	return e
}

// resultOf returns whether the image passed, or the reason why there is no summary.
func resultOf(o *gate.Outcome, v *gate.Verdict) (passed bool, why string) {
	if v.Pinned.IsZero() {
		return false, "it has no digest"
	}
	if v.Override != nil {
		return false, "an override decided (" + v.Override.ID() + ")"
	}
	isFailure := func(d policy.Decision) bool { return d.Result == policy.Fail }
	if slices.ContainsFunc(v.Decisions, isFailure) {
		return false, ""
	}
	for _, rule := range o.Rules {
		if rule.Kind == policy.ImageRule && rule.Err != nil {
			return false, "a policy could not be evaluated (rule " + rule.Rule + ")"
		}
	}
	for _, d := range v.Decisions {
		switch {
		case d.Result == policy.Indeterminate:
			return false, "it could not be verified in full"
		case d.Check.Exception != nil:
			return false, "an exception leaves it alone (" + d.Check.Exception.ID() + ")"
		case d.Result == policy.Pass:
			passed = true
		}
	}
	switch {
	case !v.Result.Admits():
		return false, "it could not be verified in full"
	case !passed:
		return false, "no policy applies to it"
	}
	return true, ""
}

// levelOf returns the highest build level that a requirement verified; 0 where none required provenance.
func levelOf(v *gate.Verdict) (level int) {
	for _, d := range v.Decisions {
		if d.Result == policy.Pass {
			level = max(level, d.BuildLevel)
		}
	}
	return level
}

// names returns the image under its own name, and the exact name of the verified copy where that
// differs.
func names(v *gate.Verdict) (own image.Pinned, mirror string) {
	own = v.Pinned
	if v.Pinned.IsZero() {
		return own, ""
	}
	var sources []image.Repository
	for _, d := range v.Decisions {
		if c := d.Check.Image; !c.Copy.IsZero() && !slices.Contains(sources, c.Ref.Repository()) {
			sources = append(sources, c.Ref.Repository())
		}
	}
	if len(sources) == 1 { // with several sources its own name is ambiguous
		return own.At(sources[0]), own.String()
	}
	if v.Redirect != nil && !v.Redirect.Target.IsZero() {
		mirror = v.Redirect.Target.String()
	}
	return own, mirror
}

// evidenceOf returns the manifests of all claims; none where one of them is unknown.
func evidenceOf(v *gate.Verdict) []descriptor {
	var all []descriptor
	for _, d := range v.Decisions {
		for _, fact := range d.Facts {
			one, ok := evidence(fact)
			if !ok {
				return nil
			}
			all = append(all, one)
		}
	}
	return inputs(all)
}

func evidence(f verify.Fact) (descriptor, bool) {
	at := f.Origin
	if at.Manifest.IsZero() || at.Repository.IsZero() {
		return descriptor{}, false
	}
	return descriptor{URI: ResourceURI(at.Repository) + "@" + at.Manifest.String(), Digest: digestSet(at.Manifest)}, true
}

// inputs joins lists, sorted and without duplicates.
func inputs(lists ...[]descriptor) []descriptor {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b descriptor) int { return strings.Compare(a.URI, b.URI) })
	return slices.CompactFunc(all, func(a, b descriptor) bool { return a.URI == b.URI })
}
