package imagevalidating

import (
	"context"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Broken returns a policy that replaces a document which does not compile, so that the objects
// that it would protect are undecided and not admitted; nil for text that is no document at all.
// It matches the resources that the document names, as far as they can be read, with the
// generated rules for pod controllers, and pods and their controllers otherwise. It never matches
// Namespaces, Nodes, Leases, Events, reviews and webhook configurations, without which a cluster
// could not be repaired.
func (c *Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	p, rough := kyvernocel.ReadBroken(text, source, why, kyvernocel.Roughly{Targets: func(doc *admission.MatchResources) ([]policy.Target, bool) {
		return constraint.Rough(doc, c.options.Kinds)
	}})
	if p != nil {
		p.Rules = []policy.Rule{&brokenRule{Broken: rough, name: p.Name}}
	}
	return p
}

// brokenRule replaces a rule that cannot be evaluated.
type brokenRule struct {
	*kyvernocel.Broken
	name string
}

var (
	_ policy.Selective   = (*brokenRule)(nil)
	_ policy.OfDocuments = (*brokenRule)(nil)
)

// Name returns the rule's name.
func (r *brokenRule) Name() string { return r.name }

// Extractors returns none: the images are not evaluated.
func (r *brokenRule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns the kinds that the rule may match.
func (r *brokenRule) Targets() []policy.Target { return r.Broken.Targets }

// OnlyDocuments reports whether the policy's evaluation.mode is JSON.
func (r *brokenRule) OnlyDocuments() bool { return r.Document() }

// ImagePatterns returns false: the images of the rule are unknown.
func (r *brokenRule) ImagePatterns() ([]string, bool) { return nil, false }

// Plan returns why the policy is broken, for subjects that it may match.
func (r *brokenRule) Plan(_ context.Context, s *policy.Subject, _ []policy.Image) (policy.RulePlan, error) {
	if s.Operation == "DELETE" {
		return policy.RulePlan{Skip: "nothing will run after a deletion"}, nil
	}
	speaks, skip := r.Speaks(s)
	if !speaks {
		return policy.RulePlan{Skip: skip}, nil
	}
	return policy.RulePlan{}, r.Why
}
