package configuration

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Absent lists the kinds that a policy names and the API server does not serve.
type Absent struct {
	// Kinds as the policy writes them, in its order.
	Kinds []string
	// All reports whether the policy names no served kind.
	All bool
}

// Kinds are the resources that an API server serves, by kind.
type Kinds map[string][]Resource

// KindsOf groups resources by kind.
func KindsOf(resources []Resource) Kinds {
	k := Kinds{}
	for _, r := range resources {
		k[r.Kind] = append(k[r.Kind], r)
	}
	return k
}

// Absent returns the kinds that a policy names in any rule and that are not served. A pattern does
// not count as a name.
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

// allTargets returns the targets of all rules of a policy.
func allTargets(p *policy.Policy) []policy.Target {
	return slices.Concat(imageTargets(p), targetsOf(p.Mutations), targetsOf(p.Validations), targetsOf(p.Generations),
		targetsOf(p.Alterations), targetsOf(p.Deletions))
}

func targetsOf[R interface{ Targets() []policy.Target }](rules []R) (list []policy.Target) {
	for _, r := range rules {
		list = append(list, r.Targets()...)
	}
	return list
}

// isSent reports whether a target's kind is one that the API server sends instead of the object for
// a request to a subresource. Discovery does not list these kinds. All of them belong to
// Kubernetes: a custom resource has only Scale.
func isSent(t policy.Target) bool {
	sent := []string{
		"Scale", "Binding", "Eviction", "TokenRequest", "PodExecOptions", "PodAttachOptions", "PodPortForwardOptions",
		"PodProxyOptions", "ServiceProxyOptions", "NodeProxyOptions",
	}
	return t.Subresource != "" && slices.Contains(sent, t.Kind)
}
