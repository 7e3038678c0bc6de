package deleting

import (
	"context"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/schedule"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// rule is a policy.Deletion: a whole policy.
type rule struct {
	schedule.Terms
	name       string
	namespace  string                 // of the policy; empty for one of the cluster
	match      *constraint.Constraint // nil matches no object of a cluster
	targets    []policy.Target
	labels     string
	scope      *cel.Scope
	conditions kyvernocel.Conditions
	options    kyvernocel.Options
}

var _ policy.Deletion = (*rule)(nil)

// Name returns the policy's name.
func (r *rule) Name() string { return r.name }

// Targets returns the kinds that the policy matches.
func (r *rule) Targets() []policy.Target { return r.targets }

// Labels returns objectSelector.
func (r *rule) Labels() string { return r.labels }

// Decide evaluates the match, and the conditions if it matches. An object is deleted only if each of
// them is certain to hold.
func (r *rule) Decide(ctx context.Context, about policy.Case) policy.DeletionDecision {
	s := *about.Subject
	// The operation and the user are those of a file: no request brings a stored object.
	s.Operation, s.User, s.Request, s.OldObject = "CREATE", policy.User{}, policy.Request{}, policy.Content{}
	if s.Namespace == "" {
		s.NamespaceMeta = policy.NamespaceMeta{} // of another object
	}
	if matched, err := r.matches(&s); err != nil || !matched {
		if err != nil {
			return policy.DeletionDecision{Result: policy.Indeterminate, Reasons: kyvernocel.Unmatched(err)}
		}
		return policy.DeletionDecision{}
	}
	inputs := r.options.Inputs(r.namespace)
	inputs.Variables = map[string]any{kyvernocel.ObjectName: s.Object.Map(), kyvernocel.NamespaceName: namespaceObject(&s)}
	activation := r.scope.NewActivation(inputs)
	var unsure *policy.DeletionDecision
	for _, condition := range r.conditions {
		held, err := condition.Bool(ctx, activation)
		switch {
		case err == nil && !held: // whatever the others are
			return policy.DeletionDecision{Result: policy.Skipped, Reasons: []policy.Reason{{
				Code: policy.SkippedByPolicy, Path: condition.Path(), Message: "the condition does not hold",
			}}}
		case err != nil && unsure == nil:
			reasons, _ := kyvernocel.Reasons(err, condition.Path())
			unsure = &policy.DeletionDecision{Result: policy.Indeterminate, Reasons: reasons}
		}
	}
	if unsure != nil {
		return *unsure
	}
	return policy.DeletionDecision{Result: policy.Pass}
}

// matches reports whether the policy selects an object. As in Kyverno, it selects every document
// that is no Kubernetes object; a cluster has none.
func (r *rule) matches(s *policy.Subject) (bool, error) {
	switch {
	case s.Object.IsZero() || s.Bare || s.Subresource != "":
		return false, nil
	case s.Document:
		return true, nil
	case r.match == nil || r.namespace != "" && s.Home() != r.namespace:
		return false, nil
	}
	return r.match.Matches(s)
}

// namespaceObject is the namespace of an object; of a Namespace it is the object itself.
func namespaceObject(s *policy.Subject) any {
	if s.Kind == "Namespace" && s.Group == "" {
		return s.Object.Map()
	}
	return kyvernocel.NamespaceObject(s)
}
