package imagevalidating

import (
	"slices"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// coversPods reports whether the policy is certain to verify the pods of a controller that it
// verifies. A pod shares only the namespace with its controller: user, name, labels and
// annotations differ, and the pod is created whenever the controller is updated.
func (b *builder) coversPods(p *program) bool {
	creates := slices.ContainsFunc(b.spec.MatchConstraints.ResourceRules[0].Operations, func(o admission.OperationType) bool {
		return o == admission.Create || o == admission.OperationAll
	})
	return creates && len(b.spec.MatchConditions)+len(p.extractors) == 0 && p.fixed && !p.mixed
}

// followers returns the rules that follow from one about pods.
func (b *builder) followers(r *rule) ([]*rule, error) {
	var autogen *v1alpha1.PodControllersGenerationConfiguration
	if doc := b.spec.AutogenConfiguration; doc != nil {
		autogen = doc.PodControllers
	}
	match := b.spec.MatchConstraints
	if b.json {
		match = nil
	}
	list, err := kyvernocel.Followers(r.name, match, autogen)
	if err != nil {
		return nil, err
	}
	var rules []*rule
	for _, f := range list {
		follower := *r
		follower.name, follower.match, follower.template = f.Name, f.Match, f.Template
		follower.named = !b.coversPods(r.program)
		rules = append(rules, &follower)
	}
	return rules, nil
}
