package imagevalidating

import (
	"slices"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/internal/celpolicy"
)

// createsPods reports whether a constraint about pods means their creation.
func createsPods(match *admission.MatchResources) bool {
	return slices.ContainsFunc(match.ResourceRules[0].Operations, func(o admission.OperationType) bool {
		return o == admission.Create || o == admission.OperationAll
	})
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
	list, err := celpolicy.Followers(r.name, match, autogen)
	if err != nil {
		return nil, err
	}
	var rules []*rule
	for _, f := range list {
		follower := *r
		follower.name, follower.match, follower.template = f.Name, f.Match, f.Template
		follower.named = !createsPods(match)
		rules = append(rules, &follower)
	}
	return rules, nil
}
