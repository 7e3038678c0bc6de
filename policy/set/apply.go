package set

import (
	"context"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set/internal/objectindex"
)

// Mutate evaluates the mutations for a subject, in the order of policies and rules. Each mutation
// reads the object as the previous ones left it. It returns the changed object, nil if nothing
// changed, and the result of each rule that matches the object. A rule that could not be evaluated changes nothing.
func (s *Set) Mutate(ctx context.Context, subject *policy.Subject, find func(*policy.Subject) policy.Finder) (map[string]any, []policy.RuleResult) {
	if len(s.mutations.All) == 0 {
		return nil, nil
	}
	var (
		results []policy.RuleResult
		changed map[string]any
		first   firstOnly
	)
	now := *subject
	apply := func(i int) {
		m := &s.mutations.All[i]
		result := policy.RuleResult{Policy: m.Policy, Rule: m.Rule.Name(), Kind: policy.MutateRule, Action: m.Policy.EffectOf("")}
		if first.done(&result) {
			return
		}
		by, easing := s.exceptedObject(ctx, m.Policy, result.Rule, &now)
		mutated := m.Rule.Mutate(ctx, policy.Case{Subject: &now, Find: find(&now), Exempt: exemptions(easing)})
		if !record(&result, mutated.Result, mutated.Reasons) {
			return
		}
		switch {
		case len(by) > 0:
			exempt(&result, by)
		case result.Ruling.Result == policy.Pass && mutated.Object != nil:
			changed = mutated.Object
			now.Object = policy.ContentOf(changed)
			result.Changed = true
		}
		result.Properties = mutated.Properties
		first.applied(&result)
		results = append(results, result)
	}
	rules := s.mutations.Of(subject)
	for _, i := range rules {
		apply(i)
	}
	if again := reinvoked(s.mutations.All, rules, results); changed != nil && len(again) > 0 {
		once := results
		results = nil
		for _, i := range again {
			apply(i)
		}
		results = joinedResults(once, results)
	}
	return changed, results
}

// reinvocable is a mutation that may be evaluated again, once, on the object as all mutations left it.
type reinvocable interface{ Reinvoke() bool }

// reinvoked returns which of the rules are evaluated again, as by the API server where a mutation changed
// the object: those that ask for it and applied.
func reinvoked(all []objectindex.Entry[policy.Mutation], rules []int, results []policy.RuleResult) (again []int) {
	for _, i := range rules {
		m := &all[i]
		rule, is := m.Rule.(reinvocable)
		if !is || !rule.Reinvoke() {
			continue
		}
		if at := resultOf(results, m.Policy, m.Rule.Name()); at >= 0 && results[at].Ruling.Result == policy.Pass {
			again = append(again, i)
		}
	}
	return again
}

func resultOf(results []policy.RuleResult, p *policy.Policy, rule string) int {
	return slices.IndexFunc(results, func(r policy.RuleResult) bool { return r.Policy == p && r.Rule == rule })
}

// joinedResults are the results of rules, some of which were evaluated again: the later result counts.
func joinedResults(results, again []policy.RuleResult) []policy.RuleResult {
	for _, r := range again {
		at := resultOf(results, r.Policy, r.Rule)
		r.Changed = r.Changed || results[at].Changed
		if r.Skip == "" {
			results[at] = r
		}
	}
	return results
}

// roomForResults bounds the preallocated results of one object: of a thousand rules, few may
// apply.
const roomForResults = 32

// Validate evaluates the validations for a subject, in the order of policies and rules, and
// returns the result of each rule that matches it.
func (s *Set) Validate(ctx context.Context, subject *policy.Subject, find policy.Finder) []policy.RuleResult {
	if len(s.validations.All) == 0 {
		return nil
	}
	var results []policy.RuleResult
	var first firstOnly
	rules := s.validations.Of(subject)
	for n, i := range rules {
		v := &s.validations.All[i]
		result := policy.RuleResult{Policy: v.Policy, Rule: v.Rule.Name(), Kind: policy.ValidateRule}
		by, easing := s.exceptedObject(ctx, v.Policy, result.Rule, subject)
		validated := v.Rule.Validate(ctx, policy.Case{Subject: subject, Find: find, Exempt: exemptions(easing)})
		if !record(&result, validated.Result, validated.Reasons) {
			continue
		}
		result.Action, result.AuditAnnotations, result.Properties = v.Policy.EffectOf(validated.Action), validated.AuditAnnotations, validated.Properties
		if first.done(&result) {
			continue
		}
		if validated.Exempted {
			by = easing
		}
		exempt(&result, by)
		if !validated.Doubtful {
			first.applied(&result)
		}
		if results == nil {
			results = make([]policy.RuleResult, 0, min(len(rules)-n, roomForResults))
		}
		results = append(results, result)
	}
	return results
}

// MayMutate reports whether a mutation may match a subject, by its kind, its namespace and the
// operation.
func (s *Set) MayMutate(subject *policy.Subject) bool { return s.mutations.May(subject) }

// MayValidate reports the same of the validations.
func (s *Set) MayValidate(subject *policy.Subject) bool { return s.validations.May(subject) }

// record records a rule's result, and reports whether the rule matches the object at all.
func record(r *policy.RuleResult, result policy.Result, reasons []policy.Reason) bool {
	switch result {
	case "":
		return false
	case policy.Pass, policy.Fail, policy.Indeterminate:
		r.Ruling = policy.Ruling{Result: result, Reasons: reasons}
	case policy.Skipped:
		r.Skip = "the rule's conditions leave it alone"
		if len(reasons) > 0 {
			r.Skip, r.Unchanged = reasons[0].Message, reasons[0].Code == policy.Unchanged
		}
	default:
		r.Ruling = policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{{
			Code: policy.Internal, Message: fmt.Sprintf("the rule %s returned %q, which is a defect", r.Rule, result),
		}}}
	}
	if !r.Ruling.Passes() && len(r.Ruling.Reasons) == 0 {
		r.Ruling.Reasons = []policy.Reason{{Code: policy.Internal, Message: "the rule " + r.Rule + " gives no reason, which is a defect"}}
	}
	for i := range r.Ruling.Reasons {
		if reason := &r.Ruling.Reasons[i]; reason.Path == "" {
			reason.Path = r.Policy.ID() + "/" + r.Rule
		}
	}
	return true
}

// firstOnly holds results that end their policies, for rules that deny or for those that do not.
type firstOnly struct{ over []policy.RuleResult }

func (f *firstOnly) done(of *policy.RuleResult) bool {
	ends := func(r policy.RuleResult) bool {
		return r.Policy == of.Policy && r.Action.Admits() == of.Action.Admits()
	}
	return of.Policy.FirstRuleOnly && slices.ContainsFunc(f.over, ends)
}

// applied records a policy whose rule has a result. A rule that could not be evaluated has none.
// One that passes and may not apply is not recorded either: the author of the object could
// otherwise choose the policy's rule.
func (f *firstOnly) applied(r *policy.RuleResult) {
	if r.Policy.FirstRuleOnly && r.Skip == "" && r.Ruling.Result != policy.Indeterminate {
		f.over = append(f.over, *r)
	}
}

// exceptedObject returns the exception that exempts an object, or those that exclude Pod Security
// controls for it. An exception for some images does not exempt the whole object.
func (s *Set) exceptedObject(ctx context.Context, p *policy.Policy, rule string, subject *policy.Subject) (by, easing []*policy.Exception) {
	if len(s.exceptions) == 0 {
		return nil, nil
	}
	for _, e := range s.speaking(ctx, p, rule, subject) {
		switch {
		case len(e.PodSecurity) > 0:
			easing = append(easing, e)
		case len(e.Images) == 0:
			return []*policy.Exception{e}, nil
		}
	}
	return nil, easing
}

// exemptions returns what exceptions exclude of a rule.
func exemptions(easing []*policy.Exception) (list []policy.PodSecurityExemption) {
	for _, e := range easing {
		list = append(list, e.PodSecurity...)
	}
	return list
}

// exempt records that exceptions, if there are any, exempt the object together.
func exempt(r *policy.RuleResult, by []*policy.Exception) {
	if len(by) == 0 {
		return
	}
	r.Skip, r.Exception, r.Others, r.Ruling = SkipReason(by[0]), by[0], by[1:], policy.Ruling{}
	for _, e := range r.Others {
		r.Skip += "; " + SkipReason(e)
	}
}
