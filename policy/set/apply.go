package set

import (
	"context"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Mutate evaluates the mutations for a subject, in the order of policies and rules. Each mutation
// reads the object as the previous ones left it. It returns the changed object, nil if nothing
// changed, and the result of each rule that matches the object. A rule that could not be evaluated changes nothing.
func (s *Set) Mutate(ctx context.Context, subject *policy.Subject, find func(*policy.Subject) policy.Finder) (map[string]any, []policy.RuleResult) {
	if len(s.mutations.all) == 0 {
		return nil, nil
	}
	var (
		results []policy.RuleResult
		changed map[string]any
		first   firstOnly
	)
	now := *subject
	for _, i := range s.mutations.of(subject) {
		m := &s.mutations.all[i]
		result := policy.RuleResult{Policy: m.policy, Rule: m.rule.Name(), Kind: policy.MutateRule, Action: m.policy.EffectOf("")}
		if first.done(&result) {
			continue
		}
		by, _ := s.exceptedObject(ctx, m.policy, result.Rule, &now)
		mutated := m.rule.Mutate(ctx, policy.Case{Subject: &now, Find: find(&now)})
		if !record(&result, mutated.Result, mutated.Reasons) {
			continue
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
	return changed, results
}

// roomForResults bounds the preallocated results of one object: of a thousand rules, few may
// apply.
const roomForResults = 32

// Validate evaluates the validations for a subject, in the order of policies and rules, and
// returns the result of each rule that matches it.
func (s *Set) Validate(ctx context.Context, subject *policy.Subject, find policy.Finder) []policy.RuleResult {
	if len(s.validations.all) == 0 {
		return nil
	}
	var results []policy.RuleResult
	var first firstOnly
	rules := s.validations.of(subject)
	for n, i := range rules {
		v := &s.validations.all[i]
		result := policy.RuleResult{Policy: v.policy, Rule: v.rule.Name(), Kind: policy.ValidateRule}
		by, easing := s.exceptedObject(ctx, v.policy, result.Rule, subject)
		validated := v.rule.Validate(ctx, policy.Case{Subject: subject, Find: find, Exempt: exemptions(easing)})
		if !record(&result, validated.Result, validated.Reasons) {
			continue
		}
		result.Action, result.AuditAnnotations, result.Properties = v.policy.EffectOf(validated.Action), validated.AuditAnnotations, validated.Properties
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
func (s *Set) MayMutate(subject *policy.Subject) bool { return s.mutations.may(subject) }

// MayValidate reports the same of the validations.
func (s *Set) MayValidate(subject *policy.Subject) bool { return s.validations.may(subject) }

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
	r.Skip, r.Exception, r.Others, r.Ruling = skipReason(by[0]), by[0], by[1:], policy.Ruling{}
	for _, e := range r.Others {
		r.Skip += "; " + skipReason(e)
	}
}

// targeted is the element of an objectIndex.
type targeted interface {
	Name() string
	Targets() []policy.Target
}

// objectRule is a rule about objects in its set.
type objectRule[R targeted] struct {
	policy *policy.Policy
	rule   R
}

// objectIndex finds the rules that may match a subject by its kind.
type objectIndex[R targeted] struct {
	all    []objectRule[R]
	byKind map[string][]int
	any    []int // of kinds that are patterns
}

func (x *objectIndex[R]) add(p *policy.Policy, rules []R) {
	if x.byKind == nil {
		x.byKind = map[string][]int{}
	}
	for _, rule := range rules {
		i := len(x.all)
		x.all = append(x.all, objectRule[R]{policy: p, rule: rule})
		targets := rule.Targets()
		if len(targets) == 0 || slices.ContainsFunc(targets, func(t policy.Target) bool { return wildcard.Contains(t.Kind) }) {
			x.any = append(x.any, i)
			continue
		}
		for _, t := range targets {
			if list := x.byKind[t.Kind]; len(list) == 0 || list[len(list)-1] != i {
				x.byKind[t.Kind] = append(list, i)
			}
		}
	}
}

// of returns the positions of the rules that may match a subject, in order.
func (x *objectIndex[R]) of(subject *policy.Subject) []int {
	list := x.byKind[subject.Kind]
	switch {
	case subject.IsBody(): // its kind is not the one that rules name
		list = make([]int, len(x.all))
		for i := range list {
			list[i] = i
		}
	case len(x.any) > 0:
		list = slices.Concat(list, x.any)
		slices.Sort(list)
	}
	outside := func(i int) bool {
		p := x.all[i].policy
		return p.Namespace != "" && p.Namespace != subject.Home() || policy.OnlyDocuments(x.all[i].rule) != subject.Document
	}
	if !slices.ContainsFunc(list, outside) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), outside)
}

// may reports whether a rule may match a subject.
func (x *objectIndex[R]) may(subject *policy.Subject) bool {
	return slices.ContainsFunc(x.of(subject), func(i int) bool {
		targets := x.all[i].rule.Targets()
		return len(targets) == 0 || slices.ContainsFunc(targets, func(t policy.Target) bool { return t.Means(subject) && t.IsAt(subject.Operation) })
	})
}
