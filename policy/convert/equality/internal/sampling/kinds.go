package sampling

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/tree"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// kind is a kind of objects that a policy matches.
type kind struct {
	group, version, name, resource string
	cluster                        bool
	operations                     []string
	subresources                   []string
	other                          bool   // the policies match no object of it
	custom                         bool   // it has no type here
	home                           string // the namespace of most objects
	known                          map[string][]facts.Path
}

// maxKinds bounds the kinds of one policy: a rule about all kinds reads few paths of each.
const maxKinds = 16

// kindsOf returns the kinds that the targets of both sides match, and one that they do not.
func kindsOf(targets []policy.Target, home string) []kind {
	found := map[string]*kind{}
	add := func(t policy.Target, r constraint.Resource) {
		of := r.Group + "/" + r.Kind
		k := found[of]
		if k == nil {
			if len(found) >= maxKinds {
				return
			}
			k = &kind{group: r.Group, version: versionOf(r.Group, r.Kind, t.Version), name: r.Kind, resource: r.Name, cluster: r.Cluster, home: home}
			k.custom = !scheme.Scheme.Recognizes(schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.name})
			found[of] = k
		}
		for _, operation := range t.Operations {
			if !slices.Contains(k.operations, operation) {
				k.operations = append(k.operations, operation)
			}
		}
		if t.Subresource != "" && !slices.Contains(k.subresources, t.Subresource) && !strings.ContainsAny(t.Subresource, "*?") {
			k.subresources = append(k.subresources, t.Subresource)
		}
	}
	for _, t := range targets {
		known := false
		for _, r := range constraint.Known() {
			if wildcard.Match(t.Kind, r.Kind) && wildcard.Match(t.Group, r.Group) && (!strings.ContainsAny(t.Kind, "*?") || slices.Contains(usual(), r.Kind)) {
				known = true
				add(t, r)
			}
		}
		if !known && !strings.ContainsAny(t.Kind, "*?") {
			add(t, constraint.Resource{Name: constraint.NameOf(t.Kind), Group: groupOf(t.Group), Kind: t.Kind})
		}
	}
	for _, other := range []constraint.Resource{{Name: "configmaps", Kind: "ConfigMap"}, {Name: "services", Kind: "Service"}} {
		if found["/"+other.Kind] == nil {
			add(policy.Target{}, other)
			if k := found["/"+other.Kind]; k != nil {
				k.other = true
			}
			break
		}
	}
	var all []kind
	for _, of := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[of])
	}
	return all
}

// groupOf returns a group that a pattern matches.
func groupOf(pattern string) string {
	return strings.NewReplacer("*", "example", "?", "x").Replace(pattern)
}

// usual are the kinds that a rule about all kinds is tried with.
func usual() []string {
	return []string{"Pod", "Deployment", "CronJob", "Service", "ConfigMap", "Namespace", "ClusterRole"}
}

func versionOf(group, kind, version string) string {
	switch {
	case version != "" && !strings.ContainsAny(version, "*?"):
		return version
	case group == "autoscaling" && kind == "HorizontalPodAutoscaler":
		return "v2"
	}
	return "v1"
}

func (k *kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// template is the path of the object's pod template, or of a Pod itself; false for no such kind.
func (k *kind) template() (facts.Path, bool) {
	switch k.group + "/" + k.name {
	case "/Pod":
		return facts.Path{}, true
	case "apps/Deployment", "apps/DaemonSet", "apps/StatefulSet", "apps/ReplicaSet", "batch/Job", "/ReplicationController":
		return facts.Path{"spec", "template"}, true
	case "batch/CronJob":
		return facts.Path{"spec", "jobTemplate", "spec", "template"}, true
	}
	return nil, false
}

// hasSpec reports whether every object of the kind has a spec: kinds that are not built in may lack it.
func (k *kind) hasSpec() bool {
	typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(k.apiVersion(), k.name))
	if err != nil {
		return false
	}
	_, has := reflect.TypeOf(typed).Elem().FieldByName("Spec")
	return has
}

// base is the least valid object of the kind.
func (k *kind) base() map[string]any {
	meta := map[string]any{"name": "web"}
	if !k.cluster {
		meta["namespace"] = k.home
	}
	root := map[string]any{"apiVersion": k.apiVersion(), "kind": k.name, "metadata": meta}
	if k.hasSpec() {
		root["spec"] = map[string]any{}
	}
	if at, ok := k.template(); ok {
		all := func(int) bool { return true }
		containers := []any{map[string]any{"name": "c", "image": "registry.example/web:v1"}}
		tree.Set(root, at.With("spec", "containers"), containers, all)
	}
	return root
}

// places are the paths in objects of the kind for a path of a policy, which for a pod is in the template, too. A path that
// begins with the template is of the kind itself.
func (k *kind) places(p facts.Path) []facts.Path {
	if found, ok := k.known[p.Key()]; ok {
		return found
	}
	all := []facts.Path{p}
	at, ok := k.template()
	first := cmp.Or(append(slices.Clone(p), "")[0])
	isOwn := len(p) >= len(at) && slices.Equal(p[:len(at)], at)
	if ok && len(at) > 0 && !isOwn && (first == "spec" || first == "metadata") {
		all = append(all, at.With(p...))
		if typed := slices.DeleteFunc(slices.Clone(all), func(p facts.Path) bool { return typeAt(k, p) == nil }); len(typed) > 0 {
			all = typed
		}
	}
	if k.known == nil {
		k.known = map[string][]facts.Path{}
	}
	k.known[p.Key()] = all
	return all
}
