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

// NameOf returns the resource of a kind, as Kubernetes would guess it, which is right
// for those that are known.
func NameOf(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case name == "" || name == "endpoints":
		return name
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
