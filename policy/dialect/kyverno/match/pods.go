package match

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// PodControllers are the kinds that make pods of a template, in Kyverno's order.
func PodControllers() []string {
	return []string{"DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController", "CronJob"}
}

// OfPods reports whether a rule matches pods as such, so that it has the same meaning for pod
// templates: not if it selects pods by name, label or annotation, nor if one of its filters selects
// other kinds as well, nor if it excludes other kinds alone.
func OfPods(match, exclude Block) bool {
	matched, plain := match.onlyPods()
	excluded, plainly := exclude.onlyPods()
	return matched && plain && plainly && (excluded || !exclude.NamesKinds())
}

// onlyPods is AboutPods for pods of Kubernetes, which a filter may name twice, as Pod and v1/Pod.
func (b Block) onlyPods() (pods, plain bool) {
	for _, f := range b.filters {
		named := slices.ContainsFunc(f.kinds, kindSelector.namesPod)
		other := slices.ContainsFunc(f.kinds, func(k kindSelector) bool { return !k.isPod() })
		if named && other || len(f.names) > 0 || f.Resources.Selector != nil || len(f.Resources.Annotations) > 0 {
			return pods, false
		}
		pods = pods || named
	}
	return pods, true
}

// AboutPods reports whether the block names pods, and whether it has the same meaning for pod
// templates: not if it selects objects by name, label or annotation, nor if one of its filters
// selects pods and other kinds.
func (b Block) AboutPods() (pods, plain bool) {
	plain = true
	for _, f := range b.filters {
		if len(f.names) > 0 || f.Resources.Selector != nil || f.Resources.Annotations != nil {
			plain = false
		}
		named := slices.ContainsFunc(f.kinds, kindSelector.namesPod)
		pods = pods || named
		plain = plain && (!named || len(f.kinds) == 1)
	}
	return pods, plain
}

// ReadsKinds reports whether every kind could be read, in a block that did not compile, and
// there is one in each filter.
func (b Block) ReadsKinds() bool {
	return len(b.filters) > 0 && !slices.ContainsFunc(b.filters, func(f filter) bool { return len(f.kinds) == 0 || len(f.kinds) != len(f.Resources.Kinds) })
}

// NamesKinds reports whether the block names any kind.
func (b Block) NamesKinds() bool {
	return slices.ContainsFunc(b.filters, func(f filter) bool { return len(f.kinds) > 0 })
}

// SelectsKind reports whether the block may match objects of a kind, in any group and version.
func (b Block) SelectsKind(kind string) bool {
	selects := func(f filter) bool {
		return len(f.kinds) == 0 || slices.ContainsFunc(f.kinds, func(s kindSelector) bool { return wildcard.Match(s.kind, kind) })
	}
	if b.all {
		return !slices.ContainsFunc(b.filters, func(f filter) bool { return !selects(f) })
	}
	return slices.ContainsFunc(b.filters, selects)
}

// namesPod reports whether the selector's kind is Pod, in any version.
func (s kindSelector) namesPod() bool { return s.kind == "Pod" && s.subresource == "" }

// ForKinds returns the block with other kinds in place of pods. Filters for other kinds are kept
// where all must hold, and in an exclusion, which they do not narrow.
func (b Block) ForKinds(kinds []string, excludes bool) Block {
	changed := Block{all: b.all, exact: b.exact}
	for _, f := range b.filters {
		if len(f.kinds) > 0 && !slices.ContainsFunc(f.kinds, kindSelector.namesPod) {
			if b.all || excludes {
				changed.filters = append(changed.filters, f)
			}
			continue
		}
		if len(f.kinds) > 0 {
			f.kinds = nil
			for _, kind := range kinds {
				f.kinds = append(f.kinds, kindSelector{group: GroupOf(kind), version: "*", kind: kind})
			}
		}
		changed.filters = append(changed.filters, f)
	}
	return changed
}

// GroupOf returns the API group of a pod controller, which keeps a generated rule from matching
// another kind of the same name.
func GroupOf(kind string) string {
	switch kind {
	case "Job", "CronJob":
		return "batch"
	case "ReplicationController":
		return ""
	}
	return "apps"
}
