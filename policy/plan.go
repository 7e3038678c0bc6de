package policy

import (
	"context"
	"fmt"
)

// Plan is what a set of policies asks of a subject.
type Plan struct {
	// Checks in the order of policies, rules and images.
	Checks []Check
	// Results are the rules that asked for no check: they do not apply, or could
	// not be asked.
	Results []RuleResult
}

// RuleResult is what became of a rule as a whole.
type RuleResult struct {
	Policy *Policy
	Rule   string
	// Skip says why the rule does not apply.
	Skip string
	// Err says why it could not be asked; the subject is then undecided.
	Err error
}

// Finder returns the images that a rule speaks of: those at the standard places,
// or at the rule's extractors. The gate supplies it.
type Finder func(extractors []Extractor) ([]Image, error)

// Plan asks every rule of every policy. A policy of a namespace is asked only
// about objects of that namespace.
func (s *Set) Plan(ctx context.Context, subject *Subject, find Finder) Plan {
	var plan Plan
	for _, p := range s.policies {
		if p.Namespace != "" && p.Namespace != subject.Namespace {
			continue
		}
		for _, rule := range p.Rules {
			checks, result := planRule(ctx, p, rule, subject, find)
			plan.Checks = append(plan.Checks, checks...)
			if result != nil {
				plan.Results = append(plan.Results, *result)
			}
		}
	}
	return plan
}

func planRule(ctx context.Context, p *Policy, rule Rule, subject *Subject, find Finder) ([]Check, *RuleResult) {
	failed := func(err error) ([]Check, *RuleResult) {
		return nil, &RuleResult{Policy: p, Rule: rule.Name(), Err: fmt.Errorf("policy %s, rule %s: %w", p.ID(), rule.Name(), err)}
	}
	images, unreadable := find(rule.Extractors(subject))
	planned, err := rule.Plan(ctx, subject, images)
	if err != nil {
		return failed(err)
	}
	if planned.Skip != "" {
		return nil, &RuleResult{Policy: p, Rule: rule.Name(), Skip: planned.Skip}
	}
	if unreadable != nil { // it matters only to a rule that applies
		return failed(unreadable)
	}
	if len(planned.Checks) == 0 {
		return nil, &RuleResult{Policy: p, Rule: rule.Name(), Skip: "it names none of the images"}
	}
	for i := range planned.Checks {
		check := &planned.Checks[i]
		check.Policy, check.Rule = p, rule.Name()
		if err := check.Validate(); err != nil {
			return failed(err)
		}
	}
	return planned.Checks, nil
}

// NeedsDigest reports whether the check cannot be decided without asking a
// registry for the image's digest.
func (c *Check) NeedsDigest() bool {
	return c.Skip == "" && (c.NeedsProof() || c.MutateDigest && c.Image.Ref.Digest().IsZero())
}

// NeedsProof reports whether the check asks for signatures or attestations.
func (c *Check) NeedsProof() bool {
	return c.Skip == "" && len(c.Requirements)+len(c.Attestations) > 0
}

// Questions returns what would have to be proved, one for each authority and kind
// of claim.
func (c *Check) Questions() []Question {
	if c.Skip != "" {
		return nil
	}
	var questions []Question
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
