package cel

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutating"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/triggers"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// mutates is a converted rule that mutates.
type mutates struct{ *mutating.Made }

// label is the name of the rule.
func (m mutates) label() string { return m.Name }

// names is that of the rule.
func (m mutates) names() []string { return []string{m.Name} }

// mutate converts a rule that mutates, after the parts of those before it.
func (c *converter) mutate(d source.Document, compiled *policy.Policy, text ruleText, before []part) []part {
	var settings struct {
		Spec struct {
			OnPolicyUpdate bool `json:"mutateExistingOnPolicyUpdate"`
		} `json:"spec"`
	}
	err := json.Unmarshal(d.Text, &settings)
	var made []*mutating.Made
	if err == nil {
		made, err = mutating.Converter{Types: c.merging, Schemas: c.types}.Convert(mutating.Rule{
			Text: text.raw, Namespaced: d.Kind == "Policy", OnPolicyUpdate: settings.Spec.OnPolicyUpdate,
			Controllers: func(name string) []string {
				if text.part > 0 {
					return []string{} // those of the pods
				}
				return controllers(compiled, name)
			},
		})
	}
	var earlier []*mutating.Made
	for _, p := range before {
		if m, is := p.(mutates); is {
			earlier = append(earlier, m.Made)
		}
	}
	var parts []part
	for _, m := range made {
		if err == nil {
			err = m.Follows(earlier)
		}
		parts = append(parts, mutates{m})
	}
	if err != nil {
		c.refuse(d, text.at, err)
		return nil
	}
	return parts
}

// policy writes the rule as a policy.
func (m mutates) policy(doc *document, name string) Policy {
	s := m.Spec()
	s.FailurePolicy = cmp.Or(doc.Spec.FailurePolicy, "Fail")
	if w := doc.Spec.WebhookConfiguration; w != nil {
		s.FailurePolicy = cmp.Or(w.FailurePolicy, s.FailurePolicy)
		s.MatchConditions = slices.Concat(w.MatchConditions, s.MatchConditions)
		if w.TimeoutSeconds != nil {
			s.Webhook = webhook{*w.TimeoutSeconds}
		}
	}
	if doc.Spec.WebhookTimeoutSeconds != nil && s.Webhook == nil {
		s.Webhook = webhook{*doc.Spec.WebhookTimeoutSeconds}
	}
	if m.Existing == nil && triggers.OfPods(s.MatchConstraints.ResourceRules) && m.Controllers != nil {
		a := &autogenFields{}
		a.PodControllers.Controllers = m.Controllers
		s.Autogen = a
	}
	return policyOf(doc, "MutatingPolicy", name, s)
}
