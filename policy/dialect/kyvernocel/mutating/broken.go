package mutating

import (
	"context"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Broken returns a policy that replaces a document which does not compile, so that the objects
// that it would protect are undecided and not admitted; nil for text that is no document at all.
// It matches the kinds of kyvernocel.Broken.
func (c *Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	p, rough := kyvernocel.ReadBroken(text, source, why, kyvernocel.Roughly{Targets: func(doc *admission.MatchResources) ([]policy.Target, bool) {
		return constraint.Rough(doc, c.options.Kinds)
	}})
	if p != nil {
		p.Mutations = []policy.Mutation{&brokenRule{Broken: rough, name: p.Name}}
	}
	return p
}

// brokenRule replaces a rule that cannot be evaluated.
type brokenRule struct {
	*kyvernocel.Broken
	name string
}

var _ policy.Mutation = (*brokenRule)(nil)

// Name returns the rule's name.
func (r *brokenRule) Name() string { return r.name }

// Targets returns the kinds that the rule may match.
func (r *brokenRule) Targets() []policy.Target { return r.Broken.Targets }

// Mutate returns why the policy is broken, for subjects that it may match.
func (r *brokenRule) Mutate(_ context.Context, about policy.Case) policy.Mutated {
	if speaks, _ := r.Speaks(about.Subject); !speaks {
		return policy.Mutated{}
	}
	return policy.Mutated{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.PolicyError, Message: r.Why.Error()}}}
}
