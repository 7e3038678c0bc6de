package selection

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// OfStored returns the match of a policy that deletes objects, as Of returns that of a rule. Of an object in no
// namespace a selector of namespaces matches none, and excludes each.
func OfStored(matched match.Document, exclude *match.Document) (Selection, error) {
	operations := []string{"CREATE"} // as if each object were created
	var s Selection
	included, err := termsOf(matched, "match", operations)
	if err != nil {
		return s, err
	}
	for _, t := range included {
		if err := s.add(t); err != nil {
			return s, err
		}
	}
	if len(s.Guessed) > 0 { // a wrong name would delete something else
		return s, &source.Unsupported{Path: "match", Found: "a custom kind, of which the resource is not known: " + s.Guessed[0]}
	}
	w := writer{object: "object", kinds: kindsOf(included), deletes: true}
	conditions, err := w.matched(included)
	if err != nil {
		return s, err
	}
	s.require("matched", conditions)
	if exclude == nil {
		return s, nil
	}
	left, err := termsOf(*exclude, "exclude", operations)
	if err != nil {
		return s, err
	}
	conditions, err = w.excluded(left)
	s.require("not-excluded", conditions)
	return s, err
}

// Kinds returns the kinds that a block names, without subresources. A version or a name may be *.
func Kinds(matched match.Document) ([]schema.GroupVersionKind, error) {
	terms, err := termsOf(matched, "match", []string{"CREATE"})
	if err != nil {
		return nil, err
	}
	var all []schema.GroupVersionKind
	for _, k := range kindsOf(terms) {
		one := schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.name}
		if k.subresource == "" && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

// Resource returns the resource of a kind; guessed says that only the kind suggests the name.
func Resource(group, kind string) (name string, guessed bool, err error) {
	if of, known := builtin.Find(group, kind); known {
		return of.Name, false, nil
	}
	name, err = plural(kind)
	return name, true, err
}
