package policy

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Plan holds the checks of a set of policies for a subject.
type Plan struct {
	// Checks in the order of policies, rules and images.
	Checks []Check
	// Results are the rules without a check: they do not apply, or could not be evaluated.
	Results []RuleResult
}

// RuleResult is the result of a rule as a whole.
type RuleResult struct {
	Policy *Policy
	Rule   string
	// Kind is the type of the rule.
	Kind RuleKind
	// Skip is the reason why the rule does not apply.
	Skip string
	// Err is the reason why the rule could not be evaluated; the subject is then undecided.
	Err       error
	Renewed   bool // unchanged images were not the rule's in the old object
	Unchanged bool // it does not apply: its images ran before the update
	// Exception is the exception that caused Skip; nil for any other cause.
	Exception *Exception
	// Judge has the last word on the checks of a rule about images; nil where they
	// decide.
	Judge Judge
	// Ruling is the result of an object rule, or of a judge, for the object itself, and Action
	// its effect. The gate sets a judge's.
	Ruling Ruling
	Action Action
	// AuditAnnotations are the author's words for the audit log, Properties those for
	// reports.
	AuditAnnotations, Properties map[string]string
	// Changed: the mutation changed the object.
	Changed bool
}

// OfObject reports whether it is about the object itself, and not about images alone.
func (r *RuleResult) OfObject() bool { return r.Judge != nil || r.Kind != ImageRule }

// Finder returns the images that a rule reads: those in the standard fields, or those at the
// rule's extractors. The gate supplies it.
type Finder func(extractors []Extractor) ([]Image, error)

// Plan evaluates the rules that may match the subject. A policy of a namespace is evaluated only
// for objects of that namespace. For a large set (see listed), the results omit rules that cannot
// match the subject by their kinds, namespaces and patterns.
//
// Unchanged images are not evaluated, and a rule is skipped if all of its images are unchanged.
func (s *Set) Plan(ctx context.Context, subject *Subject, find Finder) Plan {
	standard := sync.OnceValues(func() ([]Image, error) { return find(nil) })
	looked := func(extractors []Extractor) ([]Image, error) {
		if len(extractors) == 0 {
			return standard()
		}
		return find(extractors)
	}
	var plan Plan
	for _, member := range s.index.candidates(subject, standard) {
		checks, results := s.planRule(ctx, member, subject, looked)
		plan.Checks = append(plan.Checks, checks...)
		plan.Results = append(plan.Results, results...)
	}
	return plan
}

func (s *Set) planRule(ctx context.Context, m ruleIn, subject *Subject, find Finder) ([]Check, []RuleResult) {
	skipped := func(why string) ([]Check, []RuleResult) {
		return nil, []RuleResult{{Policy: m.policy, Rule: m.rule.Name(), Skip: why, Unchanged: why == unchanged}}
	}
	if subject.Document && !OnlyDocuments(m.rule) {
		return skipped("it is about Kubernetes objects")
	}
	images, unreadable := ImagesOf(ctx, m.rule, subject, find)
	images, renewed := s.renew(ctx, m, subject, images)
	failed := func(err error) ([]Check, []RuleResult) {
		if e := s.excepted(ctx, m.policy, m.rule.Name(), subject, images); e != nil {
			return nil, []RuleResult{{Policy: m.policy, Rule: m.rule.Name(), Skip: e.words(), Exception: e}}
		}
		return nil, []RuleResult{{Policy: m.policy, Rule: m.rule.Name(), Renewed: renewed, Err: fmt.Errorf("policy %s, rule %s: %w", m.policy.ID(), m.rule.Name(), err)}}
	}
	if unreadable == nil && len(images) > 0 && !slices.ContainsFunc(images, func(i Image) bool { return !i.Unchanged }) && !speaksOfObject(m.rule) {
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
	checks := slices.DeleteFunc(planned.Checks, func(c Check) bool { return c.Image.Unchanged })
	switch {
	case len(checks) > 0 || len(judges) > 0 && speaksOfObject(m.rule):
	case asked == 0:
		return skipped("it names none of the images")
	default:
		return skipped(unchanged)
	}
	named := !isPod(subject) && PinsNamed(m.rule)
	for i := range checks {
		check := &checks[i]
		check.Policy, check.Rule = m.policy, m.rule.Name()
		check.Action = m.policy.action(check.Action)
		check.Named = named
		if err := check.Validate(); err != nil {
			return failed(err)
		}
	}
	s.except(ctx, m, checks, subject)
	return checks, s.ruled(ctx, m, subject, images, judges)
}

// ImagesOf returns the images that a rule finds in a subject.
func ImagesOf(ctx context.Context, rule Rule, subject *Subject, find Finder) ([]Image, error) {
	extractors := rule.Extractors(subject)
	if of, ok := rule.(Locating); ok {
		located, err := of.Locate(ctx, subject)
		if err != nil || len(located) == 0 && len(extractors) > 0 {
			return nil, err
		}
		extractors = located
	}
	return find(extractors)
}

// ruled returns a result for each judge of a rule, unless an exception leaves the
// whole object alone.
func (s *Set) ruled(ctx context.Context, m ruleIn, subject *Subject, images []Image, judges []RulePlan) []RuleResult {
	if len(judges) == 0 {
		return nil
	}
	if e := s.excepted(ctx, m.policy, m.rule.Name(), subject, images); e != nil {
		return []RuleResult{{Policy: m.policy, Rule: m.rule.Name(), Skip: e.words(), Exception: e}}
	}
	results := make([]RuleResult, len(judges))
	for i, planned := range judges {
		results[i] = RuleResult{Policy: m.policy, Rule: m.rule.Name(), Judge: planned.Judge, Action: m.policy.action(planned.Action)}
	}
	return results
}

func speaksOfObject(rule Rule) bool {
	of, ok := rule.(OfObject)
	return ok && of.SpeaksOfObject()
}

// planUnderAllNames evaluates an image rule with the names in the object and, if some are copies,
// again with those of their sources: a rule never receives two names of one image. It also
// returns the plans that have a judge, one for each evaluation.
func planUnderAllNames(ctx context.Context, rule Rule, subject *Subject, images []Image) (RulePlan, []RulePlan, error) {
	isCopy := func(i Image) bool { return !i.Copy.IsZero() }
	copies := slices.IndexFunc(images, isCopy)
	if copies < 0 {
		return planJudged(ctx, rule, subject, images)
	}
	own := slices.DeleteFunc(slices.Clone(images), isCopy)
	joined, judges, err := planJudged(ctx, rule, subject, own)
	for turn := 0; err == nil; turn++ {
		named, renamed := sourceNames(own, images, turn)
		if !renamed {
			break
		}
		var (
			more   RulePlan
			judged []RulePlan
		)
		more, judged, err = planJudged(ctx, rule, subject.named(own, named), named)
		if err != nil || more.Skip != "" {
			continue
		}
		if joined.Skip != "" {
			joined = RulePlan{}
		}
		joined.Checks = append(joined.Checks, slices.DeleteFunc(more.Checks, func(c Check) bool { return !isCopy(c.Image) })...)
		judges = append(judges, judged...)
	}
	return joined, judges, err
}

// planJudged evaluates a rule, and attaches its judge to each of its checks.
func planJudged(ctx context.Context, rule Rule, subject *Subject, images []Image) (RulePlan, []RulePlan, error) {
	planned, err := rule.Plan(ctx, subject, images)
	if err != nil || planned.Skip != "" || planned.Judge == nil {
		return planned, nil, err
	}
	for i := range planned.Checks {
		planned.Checks[i].Judge = planned.Judge
	}
	return planned, []RulePlan{planned}, nil
}

// sourceNames returns the images with each copy under its source's name of that
// turn, and whether there was one.
func sourceNames(own, all []Image, turn int) (named []Image, renamed bool) {
	named = slices.Clone(own)
	for i := range named {
		seen := 0
		for _, other := range all {
			if other.Copy.IsZero() || other.Pointer != named[i].Pointer || other.Copy != own[i].Ref {
				continue
			}
			if seen == turn {
				named[i], renamed = other, true
				break
			}
			seen++
		}
	}
	return named, renamed
}

// unchanged is the reason why a rule is not evaluated again.
const unchanged = "the images that it names ran before this update"

// NeedsDigest reports whether the check needs the image's digest from a registry.
func (c *Check) NeedsDigest() bool {
	return c.Skip == "" && (c.NeedsProof() || c.WantsData != NoData || c.MutateDigest && c.Image.Ref.Digest().IsZero())
}

// NeedsProof reports whether the check requires signatures or attestations.
func (c *Check) NeedsProof() bool {
	return c.Skip == "" && len(c.Requirements)+len(c.Attestations)+len(c.Asks) > 0
}

// Questions returns the required claim queries, one for each authority and kind of claim.
func (c *Check) Questions() []Question {
	if c.Skip != "" {
		return nil
	}
	questions := slices.Clone(c.Asks)
	for i := range c.Requirements {
		questions = c.Requirements[i].questions(questions, signatureOf(c))
	}
	for i := range c.Attestations {
		a := &c.Attestations[i]
		for j := range a.Signers {
			questions = a.Signers[j].questions(questions, statementOf(c, a))
		}
	}
	return questions
}

func (r *Requirement) questions(into []Question, about Question) []Question {
	for _, m := range r.Members {
		if m.Set != nil {
			into = m.Set.questions(into, about)
			continue
		}
		into = append(into, about.by(m))
	}
	return into
}

// by returns the question for one member.
func (q Question) by(m Member) Question {
	q.Authority = m.Authority
	if len(m.Sources) > 0 {
		q.Sources = m.Sources
	}
	return q
}
