package set

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set/internal/objectindex"
	"github.com/quaymaster/quaymaster/policy/source"
)

// GenerateResult is the result of a Generation.
type GenerateResult struct {
	policy.RuleResult
	NeedsRequester bool                // as in Generation
	Terms          policy.Terms        // as in Generation
	Objects        []policy.Downstream // set if the rule passes
	source.Read                        // as in policy.Generated
}

// Generate returns the results of the generations that match a trigger, in the order of policies and rules.
func (s *Set) Generate(ctx context.Context, about policy.Case) []GenerateResult {
	subject := about.Subject
	if len(s.generations.All) == 0 {
		return nil
	}
	var results []GenerateResult
	var first firstOnly
	for _, i := range s.generations.Of(subject) {
		g := &s.generations.All[i]
		result := GenerateResult{RuleResult: policy.RuleResult{Policy: g.Policy, Rule: g.Rule.Name(), Kind: policy.GenerateRule},
			NeedsRequester: g.Rule.NeedsRequester(), Terms: g.Rule.Terms()}
		if first.done(&result.RuleResult) {
			continue
		}
		generated := g.Rule.Generate(ctx, about)
		if !record(&result.RuleResult, generated.Result, generated.Reasons) {
			continue
		}
		result.Read = generated.Read
		if by, _ := s.exceptedObject(ctx, g.Policy, result.Rule, subject); len(by) > 0 {
			exempt(&result.RuleResult, by)
		} else if result.Ruling.Result == policy.Pass {
			result.Objects, result.Changed = generated.Objects, len(generated.Objects) > 0
		}
		result.Properties = generated.Properties
		first.applied(&result.RuleResult)
		results = append(results, result)
	}
	return results
}

// AlterResult is the result of an Alteration for its trigger, before it is evaluated for the
// objects that it changes.
type AlterResult struct {
	policy.RuleResult
	// OnPolicyChange is as in Alteration.
	OnPolicyChange bool
	// SkipGenerated is as in Terms.
	SkipGenerated bool
	// NeedsRequester is as in Generation.
	NeedsRequester bool
	// Selections and Alter are set if the rule passes, and as in Selected.
	Selections []policy.Selection
	Alter      func(ctx context.Context, by policy.Selection, target map[string]any) policy.Mutated
}

// Alterations returns the results of the alterations that match a trigger, in the same order. It alters nothing.
func (s *Set) Alterations(ctx context.Context, subject *policy.Subject, find policy.Finder) []AlterResult {
	if len(s.alterations.All) == 0 {
		return nil
	}
	var results []AlterResult
	var first firstOnly
	about := policy.Case{Subject: subject, Find: find}
	for _, i := range s.alterations.Of(subject) {
		a := &s.alterations.All[i]
		result := AlterResult{
			RuleResult:     policy.RuleResult{Policy: a.Policy, Rule: a.Rule.Name(), Kind: policy.AlterRule},
			OnPolicyChange: a.Rule.OnPolicyChange(), SkipGenerated: a.Rule.SkipGenerated(), NeedsRequester: a.Rule.NeedsRequester(),
		}
		if first.done(&result.RuleResult) {
			continue
		}
		selected := a.Rule.Existing(ctx, about)
		if !record(&result.RuleResult, selected.Result, selected.Reasons) {
			continue
		}
		if by, _ := s.exceptedObject(ctx, a.Policy, result.Rule, subject); len(by) > 0 {
			exempt(&result.RuleResult, by)
		} else if result.Ruling.Result == policy.Pass {
			result.Selections, result.Alter = selected.Selections, selected.Alter
		}
		result.Properties = selected.Properties
		first.applied(&result.RuleResult)
		results = append(results, result)
	}
	return results
}

// HasDownstream reports whether the subject's object may be a trigger of a rule for other
// objects, as far as that is decidable without a lookup.
func (s *Set) HasDownstream(subject *policy.Subject) bool {
	selects := func(rule aboutOthers) bool { return rule.Selects(subject) }
	return anyRule(&s.generations, subject, selects) || anyRule(&s.alterations, subject, selects)
}

// NeedsRequester reports whether a rule for other objects may read the requester of the subject's
// object after the object exists.
func (s *Set) NeedsRequester(subject *policy.Subject) bool {
	needs := func(rule aboutOthers) bool {
		return rule.NeedsRequester() && slices.ContainsFunc(rule.Targets(), func(t policy.Target) bool { return t.Means(subject) })
	}
	return anyRule(&s.generations, subject, needs) || anyRule(&s.alterations, subject, needs)
}

// aboutOthers is the common interface of rules for other objects.
type aboutOthers interface {
	objectindex.Rule
	Selects(subject *policy.Subject) bool
	NeedsRequester() bool
}

func anyRule[R aboutOthers](x *objectindex.Index[R], subject *policy.Subject, is func(aboutOthers) bool) bool {
	if len(x.All) == 0 {
		return false
	}
	return slices.ContainsFunc(x.Of(subject), func(i int) bool { return is(x.All[i].Rule) })
}
