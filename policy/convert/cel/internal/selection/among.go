package selection

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// Rule is the match of a rule; Exclude is nil for none.
type Rule struct {
	Match   match.Document
	Exclude *match.Document
}

// Among writes the condition that a rule applies to an object of another one: empty if it never does, and
// true if it always does.
func Among(rule, of Rule, operations []string) (string, error) {
	whole, err := Of(of.Match, of.Exclude, operations)
	if err != nil {
		return "", err
	}
	terms, err := termsOf(of.Match, "match", operations)
	if err != nil {
		return "", err
	}
	w := writer{object: objectOf(whole.Resources), kinds: kindsOf(terms)}
	terms, err = termsOf(rule.Match, "match", operations)
	if err != nil {
		return "", err
	}
	var alternatives, left []string
	for _, t := range terms {
		kinds, guard, err := w.shared(t)
		if err != nil {
			return "", err
		}
		if len(kinds) == 0 {
			continue
		}
		conditions, err := w.conditions(t, kinds, false)
		if err != nil {
			return "", err
		}
		if t.narrowed {
			conditions = append(conditions, celtext.Any("request.operation", t.operations))
		}
		if guard != "" {
			conditions = append([]string{guard}, conditions...)
		}
		if len(conditions) == 0 {
			conditions = []string{"true"}
		}
		alternatives = append(alternatives, celtext.And(conditions))
	}
	if len(alternatives) == 0 {
		return "", nil
	}
	if rule.Exclude != nil {
		terms, err = termsOf(*rule.Exclude, "exclude", operations)
		if err != nil {
			return "", err
		}
		left, err = w.excluded(terms)
		if err != nil {
			return "", err
		}
	}
	if one := either(alternatives); one != "true" || len(left) == 0 {
		left = append([]string{one}, left...)
	}
	return celtext.And(left), nil
}

// InNamespaces writes the condition that an object of a rule is in one of some namespaces: by their names, by their
// labels, or both. Widely: objects in no namespace count if their labels, which are none, meet the selector.
func InNamespaces(of Rule, names []string, selector *match.Selector, widely bool) (string, error) {
	terms, err := termsOf(of.Match, "match", []string{"CREATE", "UPDATE", "DELETE", "CONNECT"})
	if err != nil {
		return "", err
	}
	all, namespaced := kindsOf(terms), true
	for _, k := range all {
		if k.name == namespaces || k.name == every {
			return "", &source.Unsupported{Path: "match", Found: "Namespaces, with actions for some namespaces"}
		}
		namespaced = namespaced && k.namespaced
	}
	w := writer{object: "object", kinds: all}
	parts, err := w.namespaces(&match.Resources{Namespaces: names, NamespaceSelector: selector}, all, true, "match")
	if err != nil || selector == nil || namespaced || !widely || len(names) > 0 {
		return celtext.And(parts), err
	}
	if len(selector.MatchLabels) > 0 {
		return celtext.And(parts), nil
	}
	for _, e := range selector.MatchExpressions {
		if !strings.HasSuffix(e.Operator, "NotIn") && e.Operator != "DoesNotExist" {
			return celtext.And(parts), nil
		}
	}
	return either([]string{"namespaceObject == null", celtext.And(parts[1:])}), nil
}
