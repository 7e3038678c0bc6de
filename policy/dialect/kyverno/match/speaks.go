package match

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// PodTargets are pods and their controllers, at operations of which none means CREATE and
// UPDATE.
func PodTargets(operations []string) []policy.Target {
	targets := filter{kinds: []kindSelector{{group: "", version: "*", kind: "Pod"}}}.targets(looks{usual: operations})
	for _, kind := range PodControllers() {
		targets = append(targets, policy.Target{Group: GroupOf(kind), Version: "*", Kind: kind, Operations: operations})
	}
	return targets
}

// Speaks reports whether one of the targets may match a subject.
func Speaks(targets []policy.Target, s *policy.Subject) bool {
	for _, t := range targets {
		kind := kindSelector{group: t.Group, version: t.Version, kind: t.Kind, subresource: t.Subresource}
		if s.Bare {
			if kind.matchesBare(s, Selecting) && (s.Namespace == "" || len(t.Namespaces) == 0 || wildcard.Any(t.Namespaces, s.Namespace)) {
				return true
			}
			continue
		}
		operations := t.Operations
		if len(operations) == 0 {
			operations = []string{"CREATE", "UPDATE"}
		}
		if !kind.matches(s, false).False() && wildcard.Any(operations, s.Operation) && (len(t.Namespaces) == 0 || wildcard.Any(t.Namespaces, s.Namespace)) {
			return true
		}
	}
	return false
}
