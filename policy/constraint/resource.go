package constraint

import (
	"slices"
	"strings"
)

// Resource is a kind of object by the name that the API server has for it.
type Resource struct {
	// Name is the plural, lower-case name, as in deployments.
	Name string
	// Group is empty for the core group.
	Group, Kind string
	// Cluster: its objects are in no namespace.
	Cluster bool
}

// Resources knows the kinds of the API server beside those that Known returns.
type Resources interface {
	// Named returns the resources of a name, in a group or, for *, in any of them.
	Named(group, name string) []Resource
}

// Known returns the resources of Kubernetes itself that policies name: what runs
// images, and what is in any cluster.
func Known() []Resource {
	return []Resource{
		{Name: "pods", Kind: "Pod"},
		{Name: "podtemplates", Kind: "PodTemplate"},
		{Name: "replicationcontrollers", Kind: "ReplicationController"},
		{Name: "deployments", Group: "apps", Kind: "Deployment"},
		{Name: "statefulsets", Group: "apps", Kind: "StatefulSet"},
		{Name: "daemonsets", Group: "apps", Kind: "DaemonSet"},
		{Name: "replicasets", Group: "apps", Kind: "ReplicaSet"},
		{Name: "jobs", Group: "batch", Kind: "Job"},
		{Name: "cronjobs", Group: "batch", Kind: "CronJob"},
		{Name: "configmaps", Kind: "ConfigMap"},
		{Name: "secrets", Kind: "Secret"},
		{Name: "services", Kind: "Service"},
		{Name: "serviceaccounts", Kind: "ServiceAccount"},
		{Name: "namespaces", Kind: "Namespace", Cluster: true},
		{Name: "nodes", Kind: "Node", Cluster: true},
	}
}

// NameOf returns the resource of a kind: one that is known, or that Kubernetes
// would guess.
func NameOf(group, kind string) string {
	for _, r := range Known() {
		if r.Group == group && r.Kind == kind {
			return r.Name
		}
	}
	name := strings.ToLower(kind)
	switch {
	case name == "":
		return ""
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// named returns the resources of a name in one of the groups.
func named(others Resources, groups []string, name string) []Resource {
	var list []Resource
	for _, group := range groups {
		for _, r := range Known() {
			if r.Name == name && (group == "*" || group == r.Group) {
				list = append(list, r)
			}
		}
		if others == nil {
			continue
		}
		for _, r := range others.Named(group, name) {
			if !slices.Contains(list, r) {
				list = append(list, r)
			}
		}
	}
	return list
}

// clusterScoped reports whether objects of a kind are known to be in no namespace.
func clusterScoped(group, kind string) (cluster, known bool) {
	for _, r := range Known() {
		if r.Group == group && r.Kind == kind {
			return r.Cluster, true
		}
	}
	return false, false
}
