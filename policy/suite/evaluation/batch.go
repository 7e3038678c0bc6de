package evaluation

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Targets are the kinds of objects that the policy at an index matches.
func (e *Evaluator) Targets(place int) []policy.Target {
	p := e.Policy(place)
	targets := slices.Clone(p.Targets)
	for _, rule := range p.Mutations {
		targets = append(targets, rule.Targets()...)
	}
	for _, rule := range p.Validations {
		targets = append(targets, rule.Targets()...)
	}
	for _, rule := range p.Generations {
		targets = append(targets, rule.Targets()...)
	}
	return targets
}

// EvaluateEvery evaluates every policy against objects. Policies that are Together are evaluated
// together; each further group evaluates the result of the previous one. The batch are the objects
// that all policies were evaluated against at once.
func (e *Evaluator) EvaluateEvery(ctx context.Context, objects []workload.Object) (answers []Answer, batch []workload.Object) {
	if len(e.config.Policies) == 0 {
		return nil, nil
	}
	all := make([]int, len(e.config.Policies))
	for i := range all {
		all[i] = i
	}
	var places []int // of the batch
	answers = make([]Answer, len(objects))
	for i, object := range objects {
		if len(e.Together(0, object.Name())) == len(all) {
			places, batch = append(places, i), append(batch, object)
			continue
		}
		answers[i] = e.evaluateApart(ctx, object)
	}
	for n, answer := range e.EvaluateAll(ctx, batch, "", all) {
		answers[places[n]] = answer
	}
	return answers, batch
}

// evaluateApart evaluates groups of policies one after the other.
func (e *Evaluator) evaluateApart(ctx context.Context, object workload.Object) Answer {
	var whole Answer
	done := map[int]bool{}
	for place := range e.config.Policies {
		if done[place] {
			continue
		}
		places := e.Together(place, object.Name())
		for _, p := range places {
			done[p] = true
		}
		answer := e.Evaluate(ctx, object, "", places)
		whole.Join(answer)
		object = answer.Object
	}
	return whole
}
