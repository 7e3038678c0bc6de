package imagevalidating

import (
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy/internal/celpolicy"
)

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
		rules = append(rules, &follower)
	}
	return rules, nil
}
