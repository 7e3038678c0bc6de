package constraint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// Resource is a kind of object by the name that the API server has for it.
type Resource = builtin.Resource

// Known returns the resources of Kubernetes itself (1.37), which are in any cluster;
// those that run images come first.
func Known() []Resource { return builtin.Resources() }

// Resources lists the kinds of the API server in addition to those that Known returns.
type Resources interface {
	// Named returns the resources of a name, in a group or, for *, in any of them.
	Named(group, name string) []Resource
}

// Later returns resources that may gain and lose members, as in a cluster: the owner of the
// policies compiles them again after a change. A constraint that names a missing resource
// compiles, and matches nothing until the resource is served.
func Later(now Resources) Resources { return later{now} }

type later struct{ Resources }

// KnowsAll reports that an unknown resource is not served.
func (later) KnowsAll() bool { return true }

// knowsAll reports whether resources are all that are served, as those of a cluster.
func knowsAll(resources Resources) bool {
	all, is := resources.(interface{ KnowsAll() bool })
	return is && all.KnowsAll()
}

// unserved is a resource of which no kind is known.
type unserved struct {
	name   string
	groups []string
}

// Error implements error.
func (u unserved) Error() string {
	return fmt.Sprintf("no kind is known for the resource %q of the groups %q, and so it would match nothing", u.name, u.groups)
}

// coming returns the groups in which the resource may be added later: those outside of Kubernetes
// itself with domain names, as custom resource definitions require, and those in which it was.
func (u unserved) coming() []string {
	return slices.DeleteFunc(slices.Clone(u.groups), func(group string) bool {
		return !builtin.IsRemoved(group, u.name) && (!strings.Contains(group, ".") || slices.ContainsFunc(Known(), func(r Resource) bool { return r.Group == group }))
	})
}

// isElsewhere reports whether another group is known to have the resource.
func (u unserved) isElsewhere(resources Resources) bool {
	return len(named(resources, []string{"*"}, u.name)) > 0
}

// mayExist reports whether a definition that is not known may bring the resource.
func (u unserved) mayExist() bool { return slices.Contains(u.groups, "*") || len(u.coming()) > 0 }

// guesses are kinds that are known by the name of their resource alone.
func (u unserved) guesses(subresource string) []kind {
	groups := u.coming()
	if slices.Contains(u.groups, "*") {
		groups = []string{"*"}
	}
	var list []kind
	for _, group := range groups {
		list = append(list, kind{group: group, name: u.name, subresource: subresource, resource: u.name, guessed: true})
	}
	return list
}

// suggestedBy reports whether a kind suggests the resource's name by the rules of English, and
// whether the name may be a form of the kind that these rules do not make, as with hyphens.
func (k *kind) suggestedBy(of string) (suggested, may bool) {
	const ending = 2 // letters that a plural may change, as in -y
	name, lower := strings.ReplaceAll(k.resource, "-", ""), strings.ToLower(of)
	stem := lower[:max(len(lower)-ending, min(len(lower), ending))]
	return NameOf(of) == k.resource || lower+"s" == k.resource, strings.HasPrefix(name, stem)
}

// checkSubresource refuses a subresource that a Kubernetes resource does not have, because it
// would match nothing.
func checkSubresource(r Resource, subresource string) error {
	switch {
	case subresource == "" || subresource == "*" || !slices.Contains(Known(), r):
		return nil
	case !slices.Contains(r.Subresources(), subresource):
		return fmt.Errorf("%s has no subresource %q, and so it would match nothing", r.Name, subresource)
	case subresource == "log":
		return fmt.Errorf("%s/log is only read, and a read is not admitted: restrict it by RBAC", r.Name)
	}
	return nil
}

// kinds represent the resource in the targets of a constraint.
func (u unserved) kinds(subresource string) []kind {
	groups := u.coming()
	if len(groups) == 0 {
		groups = u.groups
	}
	var list []kind
	for _, group := range groups {
		list = append(list, kind{group: group, name: u.name, subresource: subresource, unserved: true})
	}
	return list
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

// In returns those of a list that have a name, in a group or, for *, in any of them.
func In(list []Resource, group, name string) []Resource {
	return slices.DeleteFunc(slices.Clone(list), func(r Resource) bool { return r.Name != name || group != "*" && r.Group != group })
}

// hinting are Resources with kinds that definitions among the evaluated objects define. Their author
// does not choose what policies match: a rule matches such a kind in addition to the kinds that it
// matches without, and no exclusion and no scope follows from one.
type hinting interface {
	Hints(group, name string) []Resource
}

// certain hides the hints of Resources.
type certain struct{ Resources }

func withoutHints(resources Resources) Resources {
	if _, is := resources.(hinting); is {
		return certain{resources}
	}
	return resources
}

// hinted reads one entry of resources as kindsOf does, for the kinds of hints.
func hinted(text string, groups []string, resources Resources) (list []kind) {
	from, is := resources.(hinting)
	if !is {
		return nil
	}
	name, sub, _ := strings.Cut(text, "/")
	for _, group := range groups {
		for _, r := range from.Hints(group, name) {
			if slices.Contains(resources.Named(group, name), r) {
				continue // a policy that matches none of these is refused all the same
			}
			list = append(list, kind{group: r.Group, name: r.Kind, subresource: sub, resource: r.Name, hinted: true})
		}
	}
	return list
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

// IsClusterScoped reports whether a kind of Kubernetes itself is in no namespace.
func IsClusterScoped(group, kind string) bool {
	cluster, _ := clusterScoped(group, kind)
	return cluster
}

// clusterScoped reports whether objects of a kind are known to be in no namespace.
func clusterScoped(group, kind string) (cluster, known bool) {
	r, known := builtin.Find(group, kind)
	return r.Cluster, known
}
