package match

import (
	"errors"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// What a rule selects by and nobody knows.
var (
	ErrNamespaceUnknown = errors.New("the rule selects by labels of the object's namespace, and they are not known; on the command line, give the Namespace with --resource FILE")
	errRolesUnknown     = errors.New("the rule selects by the user's roles, and they are not known")
)

// Block is a compiled match or exclude; the zero Block matches nothing. It is
// immutable and safe for concurrent use.
type Block struct {
	filters []filter
	all     bool // every filter must match; else one
}

// filter is one resource filter: everything that it names must match.
type filter struct {
	kinds []kindSelector
	names []string
	resourceFilter
}

// Compile reads a block. Path is where it stands, for errors, which are about
// fields. A block without filters is no error here.
func Compile(m Document, path string) (Block, error) {
	flat := m.OldForm()
	ways := 0
	for _, used := range []bool{len(m.Any) > 0, len(m.All) > 0, flat} {
		if used {
			ways++
		}
	}
	if ways > 1 {
		return Block{}, field.Fail(path, "want one of any, all and the old form without either")
	}
	b := Block{all: len(m.All) > 0}
	list, name := m.Any, "any"
	switch {
	case b.all:
		list, name = m.All, "all"
	case flat:
		f, err := compileFilter(m.resourceFilter, path)
		b.filters = append(b.filters, f)
		return b, err
	}
	var errs []error
	for i, r := range list {
		place := document.Join(path, name+"["+strconv.Itoa(i)+"]")
		if r.empty() {
			errs = append(errs, field.Fail(place, "is empty, and so would match everything"))
		}
		f, err := compileFilter(r, place)
		errs = append(errs, err)
		b.filters = append(b.filters, f)
	}
	return b, errors.Join(errs...)
}

func (r resourceFilter) empty() bool {
	d := r.Resources
	return len(r.Subjects)+len(r.Roles)+len(r.ClusterRoles)+len(d.Kinds)+len(d.Names)+len(d.Namespaces)+
		len(d.Annotations)+len(d.Operations) == 0 && d.Name == "" && d.Selector == nil && d.NamespaceSelector == nil
}

func compileFilter(r resourceFilter, path string) (filter, error) {
	f := filter{resourceFilter: r, names: r.Resources.Names}
	if r.Resources.Name != "" {
		f.names = append(slices.Clone(f.names), r.Resources.Name)
	}
	var errs []error
	for i, text := range r.Resources.Kinds {
		kind, err := parseKind(text, document.Join(path, "resources.kinds["+strconv.Itoa(i)+"]"))
		errs = append(errs, err)
		f.kinds = append(f.kinds, kind)
	}
	for i, operation := range r.Resources.Operations {
		if !slices.Contains([]string{"CREATE", "UPDATE", "DELETE", "CONNECT"}, operation) {
			errs = append(errs, field.Fail(document.Join(path, "resources.operations["+strconv.Itoa(i)+"]"),
				"unknown operation %q: want CREATE, UPDATE, DELETE or CONNECT", operation))
		}
	}
	for i, s := range r.Subjects {
		if !slices.Contains([]string{"User", "Group", "ServiceAccount"}, s.Kind) {
			errs = append(errs, field.Fail(document.Join(path, "subjects["+strconv.Itoa(i)+"].kind"),
				"unknown kind %q: want User, Group or ServiceAccount", s.Kind))
		}
	}
	errs = append(errs, r.Resources.Selector.Validate(document.Join(path, "resources.selector")),
		r.Resources.NamespaceSelector.Validate(document.Join(path, "resources.namespaceSelector")))
	return f, errors.Join(errs...)
}

// Empty reports whether the block has no filter, so that it matches nothing.
func (b Block) Empty() bool { return len(b.filters) == 0 }

// Matches reports whether the block matches; an empty one matches nothing. An
// error means that it depends on what nobody knows.
func (b Block) Matches(s *policy.Subject, excluding bool) (bool, error) {
	if len(b.filters) == 0 {
		return false, nil
	}
	var unknown error
	for _, f := range b.filters {
		matched, err := f.matches(s, excluding)
		switch {
		case err != nil:
			unknown = err
		case matched != b.all:
			return matched, nil // any: the first that does; all: the first that does not
		}
	}
	return b.all && unknown == nil, unknown
}

func (f filter) matches(s *policy.Subject, excluding bool) (bool, error) {
	if s.Bare {
		return f.matchesBare(s, excluding)
	}
	d := f.Resources
	if len(f.kinds) > 0 && !slices.ContainsFunc(f.kinds, func(k kindSelector) bool { return k.matches(s) }) {
		return false, nil
	}
	if len(f.names) > 0 && !f.isNamed(s) {
		return false, nil
	}
	namespace := s.Namespace
	if s.Kind == "Namespace" && s.Group == "" {
		namespace = s.Name
	}
	if len(d.Namespaces) > 0 && !wildcard.Any(d.Namespaces, namespace) {
		return false, nil
	}
	if len(d.Operations) > 0 && !slices.Contains(d.Operations, s.Operation) {
		return false, nil
	}
	if len(d.Annotations) > 0 && !containsAll(texts(metadataOf(s)["annotations"]), d.Annotations) {
		return false, nil
	}
	if d.Selector != nil && !d.Selector.Matches(texts(metadataOf(s)["labels"])) {
		return false, nil
	}
	if matched, err := f.matchesNamespace(s); err != nil || !matched {
		return false, err
	}
	return f.matchesUser(s.User, excluding)
}

func (f filter) matchesNamespace(s *policy.Subject) (bool, error) {
	selector := f.Resources.NamespaceSelector
	switch {
	case selector == nil:
		return true, nil
	case s.Kind == "Namespace" && s.Group == "":
		return false, nil // Kyverno: does not apply to namespaces themselves
	case s.Namespace == "":
		return true, nil // nor to what is in none
	case !s.NamespaceKnown:
		return false, ErrNamespaceUnknown
	}
	return selector.Matches(s.NamespaceLabels), nil
}

// matchesUser: where nobody asks (a file, a scan), a rule about users still
// applies, and an exception for users does not.
func (f filter) matchesUser(u policy.User, excluding bool) (bool, error) {
	if len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) == 0 {
		return true, nil
	}
	if u.Name == "" && len(u.Groups) == 0 {
		return !excluding, nil
	}
	if len(f.Subjects) > 0 && !slices.ContainsFunc(f.Subjects, func(s subject) bool { return s.matches(u) }) {
		return false, nil
	}
	if len(f.Roles)+len(f.ClusterRoles) > 0 && !u.RolesKnown {
		return false, errRolesUnknown
	}
	if len(f.Roles) > 0 && !anyOf(f.Roles, u.Roles) {
		return false, nil
	}
	return len(f.ClusterRoles) == 0 || anyOf(f.ClusterRoles, u.ClusterRoles), nil
}

func anyOf(patterns, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return wildcard.Any(patterns, text) })
}

func (s subject) matches(u policy.User) bool {
	switch s.Kind {
	case "ServiceAccount":
		return wildcard.Match("system:serviceaccount:"+s.Namespace+":"+s.Name, u.Name)
	case "User":
		return wildcard.Match(s.Name, u.Name)
	}
	return anyOf([]string{s.Name}, u.Groups)
}

// metadataOf returns the metadata of the object, or of what is deleted. The object
// is decoded for that, so it is for filters that need it.
func metadataOf(s *policy.Subject) map[string]any {
	object := s.Object
	if object.IsZero() {
		object = s.OldObject
	}
	meta, _ := object.Map()["metadata"].(map[string]any)
	return meta
}

// What the API server makes of generateName: as many of its characters, with as many
// characters behind them that nobody knows before.
const (
	maxGeneratedBase = 58
	generatedSuffix  = "\x00\x00\x00\x00\x00" // stands in no pattern, so that wildcards alone match it
)

// isNamed reports whether a pattern means the subject's name. Of one that the API
// server is still to name a pattern may mean generateName, as Kyverno compares it, or
// every name that can come of it.
func (f filter) isNamed(s *policy.Subject) bool {
	if s.Name != "" {
		return wildcard.Any(f.names, s.Name)
	}
	generated, _ := metadataOf(s)["generateName"].(string)
	if wildcard.Any(f.names, generated) {
		return true
	}
	return generated != "" && wildcard.Any(f.names, generated[:min(len(generated), maxGeneratedBase)]+generatedSuffix)
}
