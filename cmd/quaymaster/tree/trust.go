package tree

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/evidence"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// maxReasons bounds the reasons of one claim in the tree.
const maxReasons = 8

// trusting has the attestors of the policies that match the image.
type trusting struct {
	verifier gate.Prover
	queries  []evidence.Query
	places   []attestor // of each query
	errors   []string
}

// attestor is a query's place in the policies.
type attestor struct{ policy, rule, name string }

func (a attestor) String() string { return "policy " + a.policy + ", attestor " + a.name }

// learn adds the attestors of an outcome's checks, each once.
func (t *trusting) learn(ctx context.Context, o gate.Outcome) {
	for _, rule := range o.Rules {
		if rule.Err != nil {
			t.errors = append(t.errors, rule.Err.Error())
		}
	}
	for i := range o.Verdicts {
		for _, d := range o.Verdicts[i].Decisions {
			for _, q := range d.Check.Questions() {
				t.add(ctx, d.Check, q)
			}
		}
	}
}

func (t *trusting) add(ctx context.Context, check *policy.Check, q policy.Question) {
	of := attestor{check.Policy.ID(), check.Rule, q.Authority.Name}
	for i, known := range t.places {
		if known == of && t.queries[i].Role == q.Role && t.queries[i].Predicate == q.Predicate {
			return
		}
	}
	resolved, err := t.verifier.Resolve(ctx, *q.Authority)
	if err != nil {
		t.errors = append(t.errors, fmt.Sprintf("%s: %v", of, err))
		return
	}
	// Equal keys would share one answer.
	t.queries = append(t.queries, evidence.Query{Question: q, Resolved: resolved, Key: claims.Key{Authority: strconv.Itoa(len(t.queries))}})
	t.places = append(t.places, of)
}

// wanted adds what the policies require to types that are always searched.
func (t *trusting) wanted(predicates, artifacts []string) (allPredicates, allArtifacts []string, sources []attest.Source) {
	allPredicates, allArtifacts = slices.Clone(predicates), slices.Clone(artifacts)
	sources = []attest.Source{{}} // the image's own repository
	for _, q := range t.queries {
		into := &allPredicates
		if q.Artifact {
			into = &allArtifacts
		}
		if q.Predicate != "" && !slices.Contains(*into, q.Predicate) {
			*into = append(*into, q.Predicate)
		}
		for _, s := range q.Sources {
			if !slices.Contains(sources, s) {
				sources = append(sources, s)
			}
		}
	}
	return allPredicates, allArtifacts, sources
}

// searching returns the attestors that search where a piece of evidence is.
func (t *trusting) searching(pinned image.Pinned, e attest.Evidence) (queries []evidence.Query, places []attestor) {
	for i, q := range t.queries {
		here := func(s attest.Source) bool {
			return s.Repository == e.Origin.Repository || s.Repository == (image.Repository{}) && e.Origin.Repository == pinned.Repository()
		}
		if len(q.Sources) == 0 && here(attest.Source{}) || slices.ContainsFunc(q.Sources, here) {
			queries, places = append(queries, q), append(places, t.places[i])
		}
	}
	return queries, places
}

// of verifies one piece of evidence for each attestor. It returns those that it verifies for, or the
// reasons, and what could not be verified.
func (t *trusting) of(ctx context.Context, pinned image.Pinned, e attest.Evidence) (trusted []Trust, reasons, failed []string) {
	one := evidence.Found{Found: attest.Found{Evidence: []attest.Evidence{e}}, Subject: pinned}
	more := 0
	queries, places := t.searching(pinned, e)
	for i, answer := range evidence.Verify(ctx, t.verifier, one, queries) {
		of := places[i]
		for _, fact := range answer.Facts {
			trusted = append(trusted, Trust{Policy: of.policy, Rule: of.rule, Attestor: of.name, Signer: fact.Signer})
		}
		for _, rejection := range answer.Rejections {
			if len(reasons) == maxReasons {
				more++
				continue
			}
			reasons = append(reasons, fmt.Sprintf("%s: %v", of, rejection))
		}
		for _, gap := range answer.Gaps {
			failed = append(failed, fmt.Sprintf("%s: %v", of, gap))
		}
	}
	switch {
	case len(trusted) > 0:
		return trusted, nil, failed
	case more > 0:
		reasons = append(reasons, fmt.Sprintf("%d further attestors", more))
	case len(reasons) == 0 && len(failed) > 0:
		reasons = []string{"it could not be verified"}
	case len(reasons) == 0 && len(t.queries) == 0:
		reasons = []string{"no policy requires a signature of this image"}
	case len(reasons) == 0:
		reasons = []string{"no policy requires a claim of this kind"}
	}
	return nil, reasons, failed
}
