package evaluation

import (
	"context"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
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
	for _, rule := range p.Deletions {
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
	isJudged := false // by another group, than whose result a later one must not change the object
	for _, places := range e.groups(object) {
		answer := e.Evaluate(ctx, object, "", places)
		late := slices.IndexFunc(answer.Rules, func(r RuleResult) bool { return r.Changed })
		if isJudged && late >= 0 {
			answer.Err = fmt.Errorf("%s/%s changes the object after other policies were evaluated, as the values give them different requests: evaluate them apart",
				answer.Rules[late].Policy.Kind, answer.Rules[late].Policy.Name)
		}
		whole.Join(answer)
		isJudged = isJudged || slices.ContainsFunc(places, func(p int) bool { return e.judges(p, object) })
		object = answer.Object
	}
	return whole
}

// groups returns the groups of policies that are evaluated together for an object. Those that only
// mutate it come first, and those that mutate next: at admission all mutations come before the other
// rules.
func (e *Evaluator) groups(object workload.Object) [][]int {
	var groups [3][][]int
	done := map[int]bool{}
	for place := range e.config.Policies {
		if done[place] {
			continue
		}
		places := e.Together(place, object.Name())
		for _, p := range places {
			done[p] = true
		}
		order := 0
		switch {
		case !slices.ContainsFunc(places, func(p int) bool { return len(e.Policy(p).Mutations) > 0 }):
			order = 2
		case slices.ContainsFunc(places, func(p int) bool { return e.judges(p, object) }):
			order = 1
		}
		groups[order] = append(groups[order], places)
	}
	return slices.Concat(groups[:]...)
}

// judges reports whether the policy at an index has rules other than mutations about objects of the kind of
// an object. A kind of the same name in another group counts.
func (e *Evaluator) judges(place int, object workload.Object) bool {
	kind := object.Kind()
	if parent, _, ok := e.config.Values.Parent(object.Group(), object.Version(), kind); ok {
		kind = parent.Kind
	}
	is := func(t policy.Target) bool { return object.IsDocument() || wildcard.Match(t.Kind, kind) }
	p := e.Policy(place)
	return len(p.Rules) > 0 && slices.ContainsFunc(p.Targets, is) ||
		slices.ContainsFunc(p.Validations, func(v policy.Validation) bool { return slices.ContainsFunc(v.Targets(), is) })
}

// Before returns an object with the mutations of the groups that are evaluated before the policy at an
// index, and an error if a group could not be evaluated.
func (e *Evaluator) Before(ctx context.Context, object workload.Object, operation string, place int) (workload.Object, error) {
	for _, places := range e.groups(object) {
		if slices.Contains(places, place) {
			break
		}
		mutates := slices.IndexFunc(places, func(p int) bool { return len(e.Policy(p).Mutations) > 0 })
		if mutates < 0 {
			continue
		}
		answer := e.Evaluate(ctx, object, operation, places)
		if answer.Err != nil {
			return object, fmt.Errorf("policy %s, which mutates the object first: %w", e.Policy(places[mutates]).Name, answer.Err)
		}
		object = answer.Object
	}
	return object, nil
}
