package builtin

import "slices"

// Sent is the kind of the body of requests for a subresource of the kind Of, which is in the core
// group.
type Sent struct{ Subresource, Group, Kind, Of string }

// AllSent returns the bodies that belong to one kind. A Scale belongs to many.
func AllSent() []Sent {
	return []Sent{
		{"exec", "", "PodExecOptions", "Pod"},
		{"attach", "", "PodAttachOptions", "Pod"},
		{"portforward", "", "PodPortForwardOptions", "Pod"},
		{"proxy", "", "PodProxyOptions", "Pod"},
		{"proxy", "", "ServiceProxyOptions", "Service"},
		{"proxy", "", "NodeProxyOptions", "Node"},
		{"binding", "", "Binding", "Pod"},
		{"eviction", "policy", "Eviction", "Pod"},
		{"token", "authentication.k8s.io", "TokenRequest", "ServiceAccount"},
	}
}

// IsSent reports whether a kind is that of a body.
func IsSent(group, kind string) bool {
	return group == "autoscaling" && kind == "Scale" ||
		slices.ContainsFunc(AllSent(), func(s Sent) bool { return s.Group == group && s.Kind == kind })
}

// IsOf reports whether a kind may be that of a resource: it is not if the resource is a built-in one
// of another kind.
func IsOf(kind, group, resource string) bool {
	for _, list := range []func() []Resource{workloads, core, groups, configuration, reviews} {
		for _, r := range list() {
			if r.Group == group && r.Name == resource {
				return r.Kind == kind
			}
		}
	}
	return true
}
