package set

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/requirements"
)

// Plan holds the checks of a set of policies for a subject.
type Plan struct {
	// Checks in the order of policies, rules and images.
	Checks []policy.Check
	// Results are the rules without a check: they do not apply, or could not be evaluated.
	Results []policy.RuleResult
}

// Plan evaluates the rules that may match the subject. A policy of a namespace is evaluated only
// for objects of that namespace. For a large set (see listed), the results omit rules that cannot
// match the subject by their kinds, namespaces and patterns.
//
// Unchanged images are not evaluated, and a rule is skipped if all of its images are unchanged.
func (s *Set) Plan(ctx context.Context, subject *policy.Subject, find policy.Finder) Plan {
	standard := sync.OnceValues(func() ([]policy.Image, error) { return find(nil) })
	looked := func(extractors []policy.Extractor) ([]policy.Image, error) {
		if len(extractors) == 0 {
			return standard()
		}
		return find(extractors)
	}
	var plan Plan
	for _, member := range s.index.candidates(subject, standard) {
		finder := policy.Finder(looked)
		if requirements.Is(member.rule) {
			finder = requirements.Finder(looked, plan.Checks)
		}
		checks, results := s.planRule(ctx, member, subject, finder)
		plan.Checks = append(plan.Checks, checks...)
		plan.Results = append(plan.Results, results...)
	}
	requirements.Bound(plan.Checks)
	return plan
}

func (s *Set) planRule(ctx context.Context, m ruleIn, subject *policy.Subject, find policy.Finder) ([]policy.Check, []policy.RuleResult) {
	skipped := func(why string) ([]policy.Check, []policy.RuleResult) {
		return nil, []policy.RuleResult{{Policy: m.policy, Rule: m.rule.Name(), Skip: why, Unchanged: why == unchanged}}
	}
	if subject.Document && !policy.OnlyDocuments(m.rule) && !requirements.Is(m.rule) {
		return skipped("it is about Kubernetes objects")
	}
	images, unreadable := policy.ImagesOf(ctx, m.rule, subject, find)
	images, renewed := s.renew(ctx, m, subject, images)
	failed := func(err error) ([]policy.Check, []policy.RuleResult) {
		if e := s.excepted(ctx, m, subject, images); e != nil {
			return nil, []policy.RuleResult{{Policy: m.policy, Rule: m.rule.Name(), Skip: SkipReason(e), Exception: e}}
		}
		return nil, []policy.RuleResult{{Policy: m.policy, Rule: m.rule.Name(), Renewed: renewed,
			Err: fmt.Errorf("policy %s, rule %s: %w", m.policy.ID(), m.rule.Name(), err)}}
	}
	if unreadable == nil && len(images) > 0 && !slices.ContainsFunc(images, func(i policy.Image) bool { return !i.Unchanged }) && !speaksOfObject(m.rule) {
		return skipped(unchanged)
	}
	planned, judges, err := planUnderAllNames(ctx, m.rule, subject, images)
	if err != nil {
		return failed(err)
	}
	if planned.Skip != "" {
		return skipped(planned.Skip)
	}
	if unreadable != nil { // it matters only to a rule that applies
		return failed(unreadable)
	}
	asked := len(planned.Checks)
	checks := slices.DeleteFunc(planned.Checks, func(c policy.Check) bool { return c.Image.Unchanged })
	switch {
	case len(checks) > 0 || len(judges) > 0 && speaksOfObject(m.rule):
	case asked == 0:
		return skipped("it names none of the images")
	default:
		return skipped(unchanged)
	}
	named := !subject.IsPod() && policy.PinsNamed(m.rule)
	for i := range checks {
		check := &checks[i]
		check.Policy, check.Rule = m.policy, m.rule.Name()
		check.Action = m.policy.EffectOf(check.Action)
		check.Named = named
		if err := check.Validate(); err != nil {
			return failed(err)
		}
	}
	s.except(ctx, m, checks, subject)
	return checks, s.ruled(ctx, m, subject, images, judges)
}

// ruled returns a result for each judge of a rule, unless exceptions leave the whole object
// alone.
func (s *Set) ruled(ctx context.Context, m ruleIn, subject *policy.Subject, images []policy.Image, judges []policy.RulePlan) []policy.RuleResult {
	if len(judges) == 0 {
		return nil
	}
	if e := s.excepted(ctx, m, subject, images); e != nil {
		return []policy.RuleResult{{Policy: m.policy, Rule: m.rule.Name(), Skip: SkipReason(e), Exception: e}}
	}
	results := make([]policy.RuleResult, len(judges))
	for i, planned := range judges {
		results[i] = policy.RuleResult{Policy: m.policy, Rule: m.rule.Name(), Judge: planned.Judge, Action: m.policy.EffectOf(planned.Action)}
	}
	return results
}

func speaksOfObject(rule policy.Rule) bool {
	of, ok := rule.(policy.OfObject)
	return ok && of.AppliesToObject()
}

// planUnderAllNames evaluates an image rule with the names in the object and, if some are copies,
// again with those of their sources: a rule never receives two names of one image. It also
// returns the plans that have a judge, one for each evaluation.
func planUnderAllNames(ctx context.Context, rule policy.Rule, subject *policy.Subject, images []policy.Image) (policy.RulePlan, []policy.RulePlan, error) {
	isCopy := func(i policy.Image) bool { return !i.Copy.IsZero() }
	copies := slices.IndexFunc(images, isCopy)
	if copies < 0 {
		return planJudged(ctx, rule, subject, images)
	}
	own := slices.DeleteFunc(slices.Clone(images), isCopy)
	joined, judges, err := planJudged(ctx, rule, subject, own)
	for turn := 0; err == nil; turn++ {
		named, found := sourceNames(own, images, turn)
		if !found {
			break
		}
		var (
			more   policy.RulePlan
			judged []policy.RulePlan
		)
		more, judged, err = planJudged(ctx, rule, renamed(subject, own, named), named)
		if err != nil || more.Skip != "" {
			continue
		}
		if joined.Skip != "" {
			joined = policy.RulePlan{}
		}
		joined.Checks = append(joined.Checks, slices.DeleteFunc(more.Checks, func(c policy.Check) bool { return !isCopy(c.Image) })...)
		judges = append(judges, judged...)
	}
	return joined, judges, err
}

// planJudged evaluates a rule, and attaches its judge to each of its checks.
func planJudged(ctx context.Context, rule policy.Rule, subject *policy.Subject, images []policy.Image) (policy.RulePlan, []policy.RulePlan, error) {
	planned, err := rule.Plan(ctx, subject, images)
	if err != nil || planned.Skip != "" || planned.Judge == nil {
		return planned, nil, err
	}
	for i := range planned.Checks {
		planned.Checks[i].Judge = planned.Judge
	}
	return planned, []policy.RulePlan{planned}, nil
}

// sourceNames returns the images with each copy under its source's name of that
// turn, and whether there was one.
func sourceNames(own, all []policy.Image, turn int) (named []policy.Image, found bool) {
	named = slices.Clone(own)
	for i := range named {
		seen := 0
		for _, other := range all {
			if other.Copy.IsZero() || other.Pointer != named[i].Pointer || other.Copy != own[i].Ref {
				continue
			}
			if seen == turn {
				named[i], found = other, true
				break
			}
			seen++
		}
	}
	return named, found
}

// unchanged is the reason why a rule is not evaluated again.
const unchanged = "the images that it names ran before this update"

// renamed returns the subject with images under other names, so that the object of a rule agrees
// with its images.
func renamed(s *policy.Subject, own, others []policy.Image) *policy.Subject {
	copied := *s
	copied.Object = s.Object.Rewrite(func(object map[string]any) map[string]any {
		for i, other := range others {
			if other.Ref == own[i].Ref {
				continue
			}
			object = policy.WithText(object, other.Pointer, func(text string) string {
				if text == own[i].Ref.Written() {
					return other.Ref.Written()
				}
				return text
			})
		}
		return object
	})
	return &copied
}
