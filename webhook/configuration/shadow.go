package configuration

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mode is the requirement that separates the namespaces of the shadow from those of the enforcing
// webhooks. Each namespace has exactly one of the two.
func (q *requirements) mode() metav1.LabelSelectorRequirement {
	r := metav1.LabelSelectorRequirement{Key: ModeLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{ModeEnforce}}
	if q.phase == shadowPhase {
		r.Operator = metav1.LabelSelectorOpNotIn
	}
	return r
}

// inNamespaces drops cluster-scoped resources, which namespace selectors cannot match. They stay in
// the shadow.
func inNamespaces(parts []part) []part {
	return slices.DeleteFunc(parts, func(p part) bool { return !p.namespaced && !p.itself() })
}

// itself reports whether the resource is Namespaces. Selectors apply to their own labels.
func (p part) itself() bool { return p.name.group == "" && p.kind == "Namespace" }

// shadowed makes a setting fail open with a short timeout.
func (s *setting) shadowed() {
	s.closed, s.seconds = false, shadowSeconds
}
