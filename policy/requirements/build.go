package requirements

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/slsa"
	"github.com/quaymaster/quaymaster/verify"
)

// buildRule requires SLSA provenance. Unlike ages it is met by evidence of its own: the table of builders
// names the signer.
type buildRule struct {
	rule
	verifier *slsa.Verifier
	asks     []policy.Question
	by       []int // the authority of each question, by its position in the verifier
}

func newBuildRule(of Requirement) (*buildRule, error) {
	verifier, err := slsa.New(of.Provenance, of.Builders)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.Path, err)
	}
	r := &buildRule{rule: rule{of}, verifier: verifier}
	for i, authority := range verifier.Authorities() {
		for _, predicate := range []string{attest.PredicateSLSAv1, attest.PredicateSLSAv02} {
			r.asks = append(r.asks, policy.Question{Authority: authority, Role: attest.Attestation, Predicate: predicate, Sources: of.Sources})
			r.by = append(r.by, i)
		}
	}
	return r, nil
}

// Name implements policy.Rule. A requirement of an age and of provenance is two rules.
func (r *buildRule) Name() string { return r.path() }

func (r *buildRule) path() string {
	switch terms := r.of.Provenance; {
	case strings.HasPrefix(r.of.Path, "--"):
		return r.of.Path
	case terms.Level > 0:
		return r.of.Path + ".slsaBuildLevel"
	case len(terms.Builders) > 0:
		return r.of.Path + ".builder"
	}
	return r.of.Path + ".source"
}

// Plan implements policy.Rule. A verified image is pinned, as by any policy: the tag may move.
func (r *buildRule) Plan(_ context.Context, subject *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	plan, err := r.of.plan(subject, images, policy.Check{
		Entry: r.path(), Action: policy.Enforce, Claims: policy.Claims{Asks: r.asks},
		Lookup: policy.Lookup{Sources: r.of.Sources}, Pinning: policy.Pinning{MutateDigest: true},
	})
	if len(plan.Checks) > 0 {
		plan.Judge = &buildJudge{r}
	}
	return plan, err
}

// buildJudge decides by one statement that meets all of the terms.
type buildJudge struct{ rule *buildRule }

// Judge implements policy.Judge.
func (j *buildJudge) Judge(ctx context.Context, given []policy.Given) policy.Judgement {
	out := policy.Judgement{Decisions: make([]policy.Decision, len(given))}
	for i := range given {
		switch err := cmp.Or(ctx.Err(), given[i].Err); {
		case err != nil:
			out.Decisions[i] = policy.Decision{Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(err, j.rule.path())}}
		default:
			out.Decisions[i] = j.image(given[i].Answers)
		}
		out.Decisions[i].Check = given[i].Check
	}
	return out
}

// image decides about one image. Several statements do not complete one another.
func (j *buildJudge) image(answers policy.Answers) policy.Decision {
	var best policy.Decision
	var met []verify.Fact // they date the image, too
	var nearest *slsa.Miss
	var at attest.Origin
	shortfall := shortfall{path: j.rule.path()}
	for i, q := range j.rule.asks {
		answer := answers(q)
		shortfall.add(answer)
		for _, fact := range answer.Facts {
			build, miss := j.rule.verifier.Verify(j.rule.by[i], fact)
			if miss == nil {
				met = append(met, fact)
			}
			switch {
			case miss != nil && (nearest == nil || rank(miss.Code) > rank(nearest.Code)):
				nearest, at = miss, fact.Origin
			case miss == nil && (best.Result == "" || build.Level > best.BuildLevel):
				best = j.met(build, fact)
			}
		}
	}
	if best.Result == policy.Pass {
		best.Facts = met
		return best
	}
	if nearest != nil {
		shortfall.reasons = append(shortfall.reasons, policy.Reason{
			Code: policy.Code(nearest.Code), Path: j.rule.path(), Message: nearest.Message, Expected: nearest.Expected, Found: nearest.Found,
			Where: at.String(), Hint: hint.Of(policy.Code(nearest.Code)),
		})
	}
	return shortfall.decision()
}

// rank orders misses: the nearest to a pass is the most useful one.
func rank(code slsa.Code) int {
	return slices.Index([]slsa.Code{slsa.Malformed, slsa.WrongBuilder, slsa.LowBuildLevel, slsa.WrongSource}, code)
}

func (j *buildJudge) met(build slsa.Build, fact verify.Fact) policy.Decision {
	message := fmt.Sprintf("SLSA build level %d by %s", build.Level, build.Builder)
	if build.Source.Repository != "" {
		message += " from " + build.Source.String()
	}
	return policy.Decision{
		Result: policy.Pass, BuildLevel: build.Level, IsOpen: !j.rule.of.Provenance.NamesBuild(),
		Reasons: []policy.Reason{{Code: policy.Verified, Path: j.rule.path(), Message: message + ", signed by " + fact.Signer.String()}},
	}
}

// shortfall collects why no statement meets the terms.
type shortfall struct {
	path       string
	reasons    []policy.Reason
	rejections []*verify.Rejection
	gaps       []policy.Reason
	instead    []string
}

func (s *shortfall) add(answer policy.Answer) {
	s.rejections = append(s.rejections, answer.Rejections...)
	for _, gap := range answer.Gaps {
		if reason := policy.LookReason(gap, s.path); !slices.Contains(s.gaps, reason) {
			s.gaps = append(s.gaps, reason)
		}
	}
	for _, other := range answer.Instead {
		if !slices.Contains(s.instead, other) {
			s.instead = append(s.instead, other)
		}
	}
}

// decision is indeterminate where evidence could not be read or verified, which may be what is required.
func (s *shortfall) decision() policy.Decision {
	if near := verify.Nearest(s.rejections); near != nil && len(s.reasons) == 0 {
		s.reasons = append(s.reasons, policy.Reason{
			Code: policy.Code(near.Code), Path: s.path, Message: "no provenance is signed by a known or declared builder",
			Expected: near.Expected, Found: near.Found, Where: near.Origin.String(), Hint: hint.Of(policy.Code(near.Code)),
		})
	}
	switch {
	case len(s.gaps) > 0:
		return policy.Decision{Result: policy.Indeterminate, Reasons: append(s.gaps, s.reasons...)}
	case len(s.reasons) == 0:
		s.reasons = []policy.Reason{{
			Code: policy.NoAttestation, Path: s.path, Message: "no SLSA provenance found", Expected: "SLSA provenance v1 or v0.2",
			Found: strings.Join(s.instead, ", "), Hint: hint.Of(policy.NoAttestation),
		}}
	}
	return policy.Decision{Result: policy.Fail, Reasons: s.reasons}
}

// keysOf returns the keys of declared builders, for the hash: an authority's own form has resolved keys alone.
func keysOf(list []Requirement) (keys []string) {
	for _, r := range list {
		for _, b := range r.Builders {
			for _, a := range b.Authorities {
				if a.Key != nil {
					keys = append(keys, a.Key.Ref)
				}
			}
		}
	}
	return keys
}
