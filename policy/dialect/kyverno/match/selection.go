package match

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Selection is the match and exclude of a rule. It is immutable and safe for concurrent
// use.
type Selection struct {
	Match, Exclude Block
}

// CompileSelection reads the match and exclude of a rule; exclude is nil for none. Path is
// the rule's, and namespace its policy's, empty for one of the cluster.
func CompileSelection(match Document, exclude *Document, path, namespace string) (Selection, error) {
	matched, err := CompileSelecting(match, path+".match")
	errs := []error{err}
	if err == nil && namespace != "" && !matched.reaches(namespace) {
		errs = append(errs, field.Fail(path+".match", "names other namespaces than %s, and a Policy applies to its own alone: it would match nothing", namespace))
	}
	if err == nil && namespace != "" && matched.isOfCluster() {
		errs = append(errs, field.Fail(path+".match",
			"selects kinds that are in no namespace, and a Policy applies to its own namespace alone: it would match nothing; write a ClusterPolicy"))
	}
	var excluded Block
	if exclude != nil {
		excluded, err = Compile(*exclude, path+".exclude")
		errs = append(errs, err, excluded.foreign())
		if errors.Join(errs...) == nil && excluded.covers(matched) {
			errs = append(errs, field.Fail(path+".exclude", "leaves out everything that match selects, and so the rule would apply to nothing"))
		}
	}
	return newSelection(matched, excluded), errors.Join(errs...)
}

// reaches reports whether the block may match objects of a namespace.
func (b Block) reaches(namespace string) bool {
	inside := func(f filter) bool {
		return len(f.Resources.Namespaces) == 0 || wildcard.Any(f.Resources.Namespaces, namespace)
	}
	if b.all {
		return !slices.ContainsFunc(b.filters, func(f filter) bool { return !inside(f) })
	}
	return slices.ContainsFunc(b.filters, inside)
}

// isOfCluster reports whether the block selects kinds in no namespace alone.
func (b Block) isOfCluster() bool {
	of := func(f filter) bool {
		return len(f.kinds) > 0 && !slices.ContainsFunc(f.kinds, func(k kindSelector) bool { return !k.isOfCluster() && !k.isNamespace() })
	}
	if b.all {
		return slices.ContainsFunc(b.filters, of)
	}
	return len(b.filters) > 0 && !slices.ContainsFunc(b.filters, func(f filter) bool { return !of(f) })
}

// newSelection joins a match and an exclude. As in Kyverno an excluded Pod includes its
// ephemeral containers, unless the match names their subresource itself: then the
// exclusion of Pods is not about them.
func newSelection(match, exclude Block) Selection {
	exclude.exact = match.NamesSubresource(ephemeralContainers)
	return Selection{Match: match, Exclude: exclude}
}

// Applies reports whether the rule applies to an object, or to the one that is deleted. In an update
// the old object has no effect, as in Kyverno 1.19.
func (x *Selection) Applies(s *policy.Subject) logic.Value {
	matched := x.Match.Matches(s, Selecting)
	if matched.False() {
		return matched
	}
	included := x.Exclude.Matches(s, Excluding).Not()
	if included.False() || matched.True() {
		return included
	}
	return matched
}

// ForKinds returns the selection with other kinds in place of pods.
func (x *Selection) ForKinds(kinds []string) Selection {
	return newSelection(x.Match.ForKinds(kinds, false), x.Exclude.ForKinds(kinds, true))
}
