package validating

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
		return constraint.RoughOfAll(doc, c.options.Kinds)
	}, Operations: []string{"CREATE", "UPDATE", "CONNECT"}}) // a kubelet that cannot delete a pod blocks its node
	if p != nil {
		action := policy.Enforce
		if p.AuditOnly {
			action = policy.Audit
		}
		p.Validations = []policy.Validation{&brokenRule{Broken: rough, name: p.Name, action: action}}
	}
	return p
}

// brokenRule cannot be asked.
type brokenRule struct {
	*kyvernocel.Broken
	name   string
	action policy.Action
}

var _ policy.Validation = (*brokenRule)(nil)

// Name returns the rule's name.
func (r *brokenRule) Name() string { return r.name }

// Targets returns the kinds that the rule may match.
func (r *brokenRule) Targets() []policy.Target { return r.Broken.Targets }

// OnlyDocuments reports whether the policy's evaluation.mode is JSON.
func (r *brokenRule) OnlyDocuments() bool { return r.Document() }

// Validate returns why the policy is broken, for subjects that it may match.
func (r *brokenRule) Validate(_ context.Context, about policy.Case) policy.Validated {
	if speaks, _ := r.Speaks(about.Subject); !speaks {
		return policy.Validated{}
	}
	return policy.Validated{Result: policy.Indeterminate, Action: r.action, Reasons: []policy.Reason{{Code: policy.PolicyError, Message: r.Why.Error()}}}
}
