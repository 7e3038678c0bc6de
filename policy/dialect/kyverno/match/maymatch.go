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

// MayMatch reports whether one of the targets may match a subject.
func MayMatch(targets []policy.Target, s *policy.Subject) bool {
	for _, t := range targets {
		kind := kindSelector{group: t.Group, version: t.Version, kind: t.Kind, subresource: t.Subresource}
		matches := s.Bare && kind.matchesBare(s, Selecting) || !s.Bare && t.IsAt(s.Operation) && !kind.matches(s, false).False()
		if matches && (len(t.Namespaces) == 0 || wildcard.Any(t.Namespaces, s.Namespace) || s.Bare && s.Namespace == "") {
			return true
		}
	}
	return false
}
