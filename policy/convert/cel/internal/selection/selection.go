package selection

import (
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

const never = "false"

// Selection holds the resources and conditions of a match.
type Selection struct {
	Resources  []admission.RuleWithOperations
	Conditions []admission.MatchCondition
	// Before is the condition that the old object of an update matches, as if it were created; empty if it
	// does wherever the new one matches, and false if none does.
	Before string
	// Guessed are the resources of custom kinds, of which only the kinds suggest the names.
	Guessed []string
}

// Of returns the match of a rule without its exclusions; nil excludes nothing. Operations are those at
// which a rule of its type is evaluated. A construct without a form is a *source.Unsupported with the path
// below the rule.
func Of(matched match.Document, exclude *match.Document, operations []string) (Selection, error) {
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
	w := writer{object: objectOf(s.Resources), kinds: kindsOf(included)}
	conditions, err := w.matched(included)
	if err != nil {
		return s, err
	}
	s.require("matched", conditions)
	var left []term
	if exclude != nil {
		left, err = termsOf(*exclude, "exclude", operations)
		if err != nil {
			return s, err
		}
	}
	conditions, err = w.excluded(left)
	if err != nil {
		return s, err
	}
	s.require("not-excluded", conditions)
	s.Before, err = before(w, included, left)
	return s, err
}

func (s *Selection) require(name string, expressions []string) {
	for i, expression := range expressions {
		numbered := name
		if i > 0 {
			numbered += "-" + strconv.Itoa(i+1)
		}
		s.Conditions = append(s.Conditions, admission.MatchCondition{Name: numbered, Expression: celtext.Lines(expression)})
	}
}

// before writes the condition on the old object of an update, as if it were created, and as if it were the new one:
// the engine asks for both.
func before(w writer, included, left []term) (string, error) {
	var all []string
	for _, operation := range []string{string(admission.Create), string(admission.Update)} {
		at := func(terms []term) []term {
			return slices.DeleteFunc(slices.Clone(terms), func(t term) bool { return !slices.Contains(t.operations, operation) })
		}
		had, out := at(included), at(left)
		if len(had) == 0 {
			return never, nil
		}
		w.object, w.old, w.guarded = "oldObject", true, len(had) < len(included)
		conditions, err := w.matched(had)
		if err != nil {
			return "", err
		}
		not, err := w.excluded(out)
		if err != nil {
			return "", err
		}
		// Conditions on the rest of the request hold of both objects.
		reads := func(expression string) bool { return strings.Contains(expression, w.object) }
		if !w.guarded {
			conditions = slices.DeleteFunc(conditions, func(e string) bool { return !reads(e) })
		}
		if !slices.Contains(not, never) && !slices.ContainsFunc(left, func(t term) bool { return t.narrowed }) {
			not = slices.DeleteFunc(not, func(e string) bool { return !reads(e) })
		}
		if slices.Contains(not, never) {
			return never, nil
		}
		for _, one := range append(conditions, not...) {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return celtext.And(all), nil
}

// objectOf names the object of a request: of a deletion, the old one.
func objectOf(rules []admission.RuleWithOperations) string {
	if slices.ContainsFunc(rules, func(r admission.RuleWithOperations) bool { return slices.Contains(r.Operations, admission.Delete) }) {
		return "(object != null ? object : oldObject)"
	}
	return "object"
}

// term is one filter, or several that must hold together. One of the terms of a block must hold.
type term struct {
	filters    []placed
	kinds      []kind
	operations []string
	// narrowed: the filters name operations.
	narrowed bool
	at       string
}

// placed is a filter with its path.
type placed struct {
	match.Filter
	at string
}

// termsOf reads a block. Terms that name none of the operations never hold.
func termsOf(m match.Document, place string, operations []string) ([]term, error) {
	indexed := func(list []match.Filter, name string) []placed {
		var all []placed
		for i, f := range list {
			all = append(all, placed{f, source.Index(place+"."+name, i)})
		}
		return all
	}
	groups := [][]placed{{{m.Filter, place}}}
	switch {
	case len(m.All) > 0:
		groups = [][]placed{indexed(m.All, "all")}
	case len(m.Any) > 0:
		groups = nil
		for _, f := range indexed(m.Any, "any") {
			groups = append(groups, []placed{f})
		}
	}
	var terms []term
	for _, filters := range groups {
		t, err := termOf(filters, operations)
		if err != nil {
			return nil, err
		}
		if len(t.operations) > 0 {
			terms = append(terms, t)
		}
	}
	return terms, nil
}

func termOf(filters []placed, operations []string) (term, error) {
	t := term{filters: filters, operations: operations, at: filters[0].at}
	for _, f := range filters {
		switch {
		case len(f.Roles) > 0:
			return t, &source.Unsupported{Path: f.at + ".roles", Found: "roles of the user, which CEL does not know"}
		case len(f.ClusterRoles) > 0:
			return t, &source.Unsupported{Path: f.at + ".clusterRoles", Found: "cluster roles of the user, which CEL does not know"}
		}
		if named := f.Resources.Operations; len(named) > 0 {
			t.narrowed = true
			t.operations = slices.DeleteFunc(slices.Clone(t.operations), func(o string) bool { return !slices.Contains(named, o) })
		}
		kinds, err := kindsFrom(f.Resources.Kinds, f.at+".resources.kinds")
		if err != nil {
			return t, err
		}
		t.kinds, err = t.both(kinds, f.at)
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// both returns the kinds that both a term and another filter have; no kinds are all of them.
func (t term) both(kinds []kind, at string) ([]kind, error) {
	switch {
	case len(kinds) == 0 || slices.Equal(kinds, t.kinds):
		return t.kinds, nil
	case len(t.kinds) == 0:
		return kinds, nil
	}
	return nil, &source.Unsupported{Path: at + ".resources.kinds", Found: "other kinds than in a filter that must hold as well"}
}
