package match

import (
	"errors"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Causes of an indeterminate selection.
var (
	ErrNamespaceUnknown = errors.New(
		"the rule selects by labels of the object's namespace, and they are not known; on the command line, give the Namespace with --resource FILE")
	errRolesUnknown = errors.New("the rule selects by the user's roles, and they are not known")
)

// Polarity is the effect of a block on its rule. It decides how a field with an absent value, as
// opposed to an unknown one, is read; see the table of TestPolarity.
type Polarity int

// The polarities.
const (
	// Selecting: the rule applies to the objects that the block matches.
	Selecting Polarity = iota
	// Excluding: the rule does not apply to the objects that the block matches.
	Excluding
	// Excepting: an exception covers the objects that the block matches. As in Kyverno, a kind
	// does not include ephemeral containers.
	Excepting
)

// Block is a compiled match or exclude; the zero Block matches nothing. It is
// immutable and safe for concurrent use.
type Block struct {
	filters []filter
	all     bool // every filter must match; else one
	// exact: a kind does not include the containers that are added later.
	exact bool
}

// filter is one resource filter: everything that it names must match.
type filter struct {
	kinds []kindSelector
	names []string
	// empty: nothing is named, which matches nothing, as in Kyverno.
	empty bool
	// ofMatch: it is of the match of a rule, not of an exclusion.
	ofMatch bool
	foreign []error // its kinds that exempt nothing in Kyverno
	Filter
}

// Compile reads a block. Path is its location, for errors, which refer to fields. A block without
// filters is no error here, and neither is a filter without fields, which matches nothing.
func Compile(m Document, path string) (Block, error) {
	flat := m.OldForm()
	forms := 0
	for _, used := range []bool{len(m.Any) > 0, len(m.All) > 0, flat} {
		if used {
			forms++
		}
	}
	if forms > 1 {
		return Block{}, field.Fail(path, "want one of any, all and the old form without either")
	}
	b := Block{all: len(m.All) > 0}
	list, name := m.Any, "any"
	switch {
	case b.all:
		list, name = m.All, "all"
	case flat:
		f, err := compileFilter(m.Filter, path)
		b.filters = append(b.filters, f)
		return b, err
	}
	var errs []error
	for i, r := range list {
		f, err := compileFilter(r, document.Join(path, name+"["+strconv.Itoa(i)+"]"))
		errs = append(errs, err)
		b.filters = append(b.filters, f)
	}
	if b.all {
		errs = append(errs, b.overlap(path))
	}
	return b, errors.Join(errs...)
}

// CompileExcepting is CompileSelecting for the match of an exception.
func CompileExcepting(m Document, path string) (Block, error) {
	b, err := CompileSelecting(m, path)
	return b, errors.Join(err, b.foreign())
}

// CompileSelecting is Compile for a block that must match something, as the match of a rule.
func CompileSelecting(m Document, path string) (Block, error) {
	b, err := Compile(m, path)
	if err == nil && b.Empty() {
		err = field.Fail(path, "is empty, and so would match nothing")
	}
	var errs []error
	name := "any"
	if b.all {
		name = "all"
	}
	for i, f := range b.filters {
		b.filters[i].ofMatch = true
		if f.empty {
			errs = append(errs, field.Fail(document.Join(path, name+"["+strconv.Itoa(i)+"]"), "is empty, and so would match nothing"))
		}
	}
	return b, errors.Join(append([]error{err}, errs...)...)
}

func (r Filter) empty() bool {
	d := r.Resources
	return len(r.Subjects)+len(r.Roles)+len(r.ClusterRoles)+len(d.Kinds)+len(d.Names)+len(d.Namespaces)+
		len(d.Annotations)+len(d.Operations) == 0 && d.Name == nil && d.Selector == nil && d.NamespaceSelector == nil
}

// Empty reports whether the block has no filter, so that it matches nothing.
func (b Block) Empty() bool { return len(b.filters) == 0 }

// Matches reports whether the block matches; an empty one matches nothing.
func (b Block) Matches(s *policy.Subject, polarity Polarity) logic.Value {
	result := logic.Is(b.all && len(b.filters) > 0)
	for i := range b.filters {
		matched := b.filters[i].matches(s, polarity, b.exact || polarity == Excepting)
		switch {
		case matched.Cause() != nil:
			result = logic.Prefer(result, matched)
		case matched.True() != b.all:
			return matched // any: the first that matches; all: the first that does not
		}
	}
	return result
}

// matches evaluates the cheap fields first, since most filters fail by their kinds.
func (f *filter) matches(s *policy.Subject, polarity Polarity, exact bool) logic.Value {
	if f.empty {
		return logic.Is(false)
	}
	if s.Bare {
		return f.matchesBare(s, polarity)
	}
	result := f.matchesKind(s, polarity, exact)
	if result.False() {
		return result
	}
	if d := &f.Resources; len(d.Operations) > 0 && !slices.Contains(d.Operations, s.Operation) {
		return logic.Is(false)
	}
	for _, part := range [...]func(*filter, *policy.Subject, Polarity) logic.Value{
		(*filter).matchesName, (*filter).matchesNamespaceName, (*filter).matchesMetadata, (*filter).matchesNamespace, (*filter).matchesUser,
	} {
		v := part(f, s, polarity)
		if v.False() {
			return v
		}
		result = logic.Prefer(result, v)
	}
	return result
}

// matchesKind: a kind is indeterminate for a subresource with an unknown object, or for a version
// other than the rule's.
func (f *filter) matchesKind(s *policy.Subject, polarity Polarity, exact bool) logic.Value {
	if len(f.kinds) == 0 {
		return logic.Is(true)
	}
	result := logic.Is(false)
	for i := range f.kinds {
		v := f.kinds[i].matches(s, exact)
		if v.False() && polarity == Selecting {
			v = f.kinds[i].matchesUnconverted(s, exact)
		}
		if v.True() {
			return v
		}
		result = logic.Prefer(result, v)
	}
	return result
}

// matchesNamespaceName: a Namespace is selected by its own name, as in Kyverno. A cluster-scoped
// object has the empty name, which * alone matches.
func (f *filter) matchesNamespaceName(s *policy.Subject, polarity Polarity) logic.Value {
	patterns := f.Resources.Namespaces
	if len(patterns) == 0 {
		return logic.Is(true)
	}
	if isNamespace(s) {
		return named(s, patterns, polarity)
	}
	return logic.Is(wildcard.Any(patterns, s.Namespace))
}

// isNamespace reports whether the subject is a Namespace of Kubernetes.
func isNamespace(s *policy.Subject) bool { return s.Kind == "Namespace" && s.Group == "" }

// matchesNamespace: an object without a namespace has no labels of one, and no exclusion covers it. A rule that names its
// kind applies to it, since it would have no effect otherwise. One that selects the kind with a wildcard does as in Kyverno:
// to an object without labels, and never to a Namespace: a rule about all objects of some namespaces would refuse those of
// the cluster. The exclusion of a cleanup policy keeps them.
func (f *filter) matchesNamespace(s *policy.Subject, polarity Polarity) logic.Value {
	selector := f.Resources.NamespaceSelector
	switch {
	case selector == nil:
		return logic.Is(true)
	case isNamespace(s), s.Namespace == "":
		return logic.Is(polarity == Selecting && (!f.ofMatch || f.namesKind(s) || !isNamespace(s) && selector.Matches(nil)))
	case !s.NamespaceKnown && selector.selects():
		return logic.Indeterminate(ErrNamespaceUnknown)
	}
	return logic.Is(selector.Matches(s.NamespaceLabels))
}

// namesKind reports whether the kind of the subject is written out.
func (f *filter) namesKind(s *policy.Subject) bool {
	return slices.ContainsFunc(f.kinds, func(k kindSelector) bool {
		return !wildcard.Contains(k.kind) && k.kind == s.Kind && wildcard.Match(k.group, s.Group)
	})
}

// matchesUser: without a user (a file, a scan) a rule about users applies, and an
// exclusion of users does not.
func (f *filter) matchesUser(s *policy.Subject, polarity Polarity) logic.Value {
	u := &s.User
	if len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) == 0 {
		return logic.Is(true)
	}
	if u.Name == "" && len(u.Groups)+len(u.Roles)+len(u.ClusterRoles) == 0 {
		return logic.Is(polarity == Selecting)
	}
	if len(f.Subjects) > 0 && !slices.ContainsFunc(f.Subjects, func(s subject) bool { return s.matches(u) }) {
		return logic.Is(false)
	}
	if len(f.Roles)+len(f.ClusterRoles) > 0 && !u.RolesKnown {
		return logic.Indeterminate(errRolesUnknown)
	}
	if len(f.Roles) > 0 && !anyOf(f.Roles, u.Roles, polarity != Selecting) {
		return logic.Is(false)
	}
	return logic.Is(len(f.ClusterRoles) == 0 || anyOf(f.ClusterRoles, u.ClusterRoles, polarity != Selecting))
}

// anyOf compares exactly, as Kyverno does with roles, where a pattern would exempt users.
func anyOf(names, of []string, exact bool) bool {
	return slices.ContainsFunc(of, func(s string) bool { return slices.Contains(names, s) || !exact && wildcard.Any(names, s) })
}

func (s subject) matches(u *policy.User) bool {
	switch s.Kind {
	case "ServiceAccount":
		return wildcard.Match("system:serviceaccount:"+s.Namespace+":"+s.Name, u.Name)
	case "User":
		return wildcard.Match(s.Name, u.Name)
	}
	return anyOf([]string{s.Name}, u.Groups, false)
}
