package configuration

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mode is the requirement by which a webhook of a shadow and those that enforce part the
// namespaces: each has exactly one of the two.
func (q *questions) mode() metav1.LabelSelectorRequirement {
	r := metav1.LabelSelectorRequirement{Key: ModeLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{ModeEnforce}}
	if q.phase == shadowDoor {
		r.Operator = metav1.LabelSelectorOpNotIn
	}
	return r
}

// inNamespaces leaves out what no selector of namespaces can speak of: it stays in the
// shadow everywhere.
func inNamespaces(parts []part) []part {
	return slices.DeleteFunc(parts, func(p part) bool { return !p.namespaced && !p.itself() })
}

// itself reports whether Namespaces are meant, whose own labels selectors are held
// against.
func (p part) itself() bool { return p.name.group == "" && p.kind == "Namespace" }

// shadowed returns what a shadow makes of a setting: nobody is stopped, and nobody waits
// for long.
func (s *setting) shadowed() {
	s.closed, s.seconds = false, shadowSeconds
}
