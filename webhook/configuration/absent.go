package configuration

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// Absent are the kinds that a policy names and the API server does not serve.
type Absent struct {
	// Kinds as the policy writes them, in its order.
	Kinds []string
	// All says that it names no other.
	All bool
}

// Kinds are the resources that an API server serves, by their kind.
type Kinds map[string][]Resource

// KindsOf returns the kinds of resources.
func KindsOf(resources []Resource) Kinds {
	k := Kinds{}
	for _, r := range resources {
		k[r.Kind] = append(k[r.Kind], r)
	}
	return k
}

// Absent returns what a policy names in any of its rules and is not served. A kind that
// is a pattern is no name.
func (k Kinds) Absent(p *policy.Policy) Absent {
	var absent Absent
	served := false
	for _, t := range allTargets(p) {
		switch name := written(t); {
		case k.serve(t):
			served = true
		case isSent(t): // its object is another target
		case !slices.Contains(absent.Kinds, name):
			absent.Kinds = append(absent.Kinds, name)
		}
	}
	absent.All = len(absent.Kinds) > 0 && !served
	return absent
}

func (k Kinds) serve(t policy.Target) bool {
	return isPattern(t.Kind) || slices.ContainsFunc(k[t.Kind], func(r Resource) bool {
		return wildcard.Match(t.Group, r.Group) && wildcard.Match(t.Version, r.Version)
	})
}

// allTargets are those of all rules of a policy, of whatever sort.
func allTargets(p *policy.Policy) []policy.Target {
	targets := slices.Clone(imageTargets(p))
	for _, m := range p.Mutations {
		targets = append(targets, m.Targets()...)
	}
	for _, v := range p.Validations {
		targets = append(targets, v.Targets()...)
	}
	for _, g := range p.Generations {
		targets = append(targets, g.Targets()...)
	}
	for _, a := range p.Alterations {
		targets = append(targets, a.Targets()...)
	}
	return targets
}

// isSent reports whether a target is of what the API server sends in place of the object
// for a request to a subresource. Discovery lists no such kind, and these are Kubernetes'
// own: a custom resource has none but Scale.
func isSent(t policy.Target) bool {
	sent := []string{
		"Scale", "Binding", "Eviction", "TokenRequest", "PodExecOptions", "PodAttachOptions", "PodPortForwardOptions",
		"PodProxyOptions", "ServiceProxyOptions", "NodeProxyOptions",
	}
	return t.Subresource != "" && slices.Contains(sent, t.Kind)
}
