package match

import (
	"reflect"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// checkReach refuses a filter with kinds of which no object meets its operations or namespaces.
func (f *filter) checkReach(path string) error {
	d := &f.Resources
	if len(f.kinds) == 0 {
		return nil
	}
	asked := func(k kindSelector) bool { return slices.ContainsFunc(d.Operations, k.mayHave) }
	if len(d.Operations) > 0 && !slices.ContainsFunc(f.kinds, asked) {
		return field.Fail(path+".operations",
			"%s is no operation of %s, and so the filter would match nothing: CONNECT is that of subresources such as Pod/exec, CREATE that of Pod/eviction, UPDATE that of scale and status",
			strings.Join(d.Operations, ", "), strings.Join(d.Kinds, ", "))
	}
	if len(d.Namespaces) > 0 && !wildcard.Any(d.Namespaces, "") && !slices.ContainsFunc(f.kinds, func(k kindSelector) bool { return !k.isOfCluster() }) {
		return field.Fail(path+".namespaces", "objects of %s are in no namespace, and so the filter would match nothing", strings.Join(d.Kinds, ", "))
	}
	return nil
}

// mayHave reports whether requests for objects of the selector may have an operation.
func (s kindSelector) mayHave(operation string) bool {
	isBuiltin := len(s.builtins()) > 0 || s.subresource == "" && wildcard.Contains(s.kind)
	return builtin.MayHave(s.subresource, operation, isBuiltin)
}

// isOfCluster reports whether the selector selects only kinds of Kubernetes that are in no
// namespace. A Namespace is selected by its own name.
func (s kindSelector) isOfCluster() bool {
	known := s.builtins()
	return len(known) > 0 && !s.isNamespace() && !slices.ContainsFunc(known, func(r builtin.Resource) bool { return !r.Cluster })
}

func (s kindSelector) isNamespace() bool { return s.kind == "Namespace" && len(s.builtins()) > 0 }

// NeverAt reports whether the block matches at none of the operations.
func (m Document) NeverAt(operations []string) bool {
	never := func(f Filter) bool {
		named := f.Resources.Operations
		return len(named) > 0 && !slices.ContainsFunc(named, func(o string) bool { return slices.Contains(operations, o) })
	}
	switch {
	case len(m.All) > 0:
		return slices.ContainsFunc(m.All, never)
	case len(m.Any) > 0:
		return !slices.ContainsFunc(m.Any, func(f Filter) bool { return !never(f) })
	}
	return never(m.Filter)
}

// CheckOperations refuses a match that names only operations at which the rule is not evaluated.
func (m Document) CheckOperations(operations []string, path string) error {
	if !m.NeverAt(operations) {
		return nil
	}
	return field.Fail(path, "names none of the operations at which the rule is evaluated, and so it would match nothing: %s; a deletion is judged by validate.deny on request.oldObject", strings.Join(operations, ", "))
}

// covers reports whether the block matches, by its text, everything that another matches.
func (b Block) covers(other Block) bool {
	if b.Empty() || other.Empty() {
		return false
	}
	covered := func(m filter) bool {
		covering := func(e filter) bool { return e.covers(&m) }
		if b.all {
			return !slices.ContainsFunc(b.filters, func(e filter) bool { return !covering(e) })
		}
		return slices.ContainsFunc(b.filters, covering)
	}
	if other.all {
		return slices.ContainsFunc(other.filters, covered)
	}
	return !slices.ContainsFunc(other.filters, func(m filter) bool { return !covered(m) })
}

func (f *filter) covers(m *filter) bool {
	wide, narrow := &f.Resources, &m.Resources
	if f.empty || m.empty {
		return false
	}
	kinds := len(f.kinds) == 0 || len(m.kinds) > 0 && !slices.ContainsFunc(m.kinds, func(k kindSelector) bool {
		return !slices.ContainsFunc(f.kinds, func(own kindSelector) bool {
			return includes(own.group, k.group) && includes(own.version, k.version) && includes(own.kind, k.kind) && includes(own.subresource, k.subresource)
		})
	})
	for key, value := range wide.Annotations {
		if held, has := narrow.Annotations[key]; !has || held != value {
			return false
		}
	}
	users := len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) == 0 ||
		reflect.DeepEqual(f.Subjects, m.Subjects) && reflect.DeepEqual(f.Roles, m.Roles) && reflect.DeepEqual(f.ClusterRoles, m.ClusterRoles)
	return kinds && users && includesAll(f.names, m.names) && includesAll(wide.Namespaces, narrow.Namespaces) && includesAll(wide.Operations, narrow.Operations) &&
		wide.Selector.covers(narrow.Selector) &&
		(wide.NamespaceSelector.covers(narrow.NamespaceSelector) || !wide.NamespaceSelector.selects() && m.isNamespaced())
}

// covers: one of namespaces without requirements matches no cluster-scoped object.
func (s *Selector) covers(other *Selector) bool {
	return s == nil || other != nil && reflect.DeepEqual(*s, *other)
}

// isNamespaced reports whether all objects of the filter are known to be in namespaces.
func (f *filter) isNamespaced() bool {
	return len(f.kinds) > 0 && !slices.ContainsFunc(f.kinds, func(k kindSelector) bool {
		known := k.builtins()
		return len(known) == 0 || slices.ContainsFunc(known, func(r builtin.Resource) bool { return r.Cluster })
	})
}

// includes reports whether a pattern matches everything that another matches.
func includes(pattern, other string) bool {
	return pattern == other || pattern == "*" || !wildcard.Contains(other) && wildcard.Match(pattern, other)
}

// includesAll is includes for lists, of which an empty one matches everything.
func includesAll(patterns, others []string) bool {
	if len(patterns) == 0 || slices.Contains(patterns, "*") {
		return true
	}
	return len(others) > 0 && !slices.ContainsFunc(others, func(other string) bool {
		return !slices.ContainsFunc(patterns, func(p string) bool { return includes(p, other) })
	})
}
