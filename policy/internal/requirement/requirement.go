// Package requirement finds requirements of labels that no labels meet.
package requirement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Selector compiles a label selector. It fails for one that Kubernetes would refuse, and for one
// that no labels meet.
func Selector(doc *meta.LabelSelector) (labels.Selector, error) {
	compiled, err := meta.LabelSelectorAsSelector(doc)
	if err != nil {
		return nil, err
	}
	if why := Contradiction(Of(doc)); why != "" {
		return nil, fmt.Errorf("no labels meet it: %s", why)
	}
	return compiled, nil
}

// Of returns the requirements of a selector.
func Of(doc *meta.LabelSelector) []Requirement {
	if doc == nil {
		return nil
	}
	var list []Requirement
	for _, key := range slices.Sorted(maps.Keys(doc.MatchLabels)) {
		list = append(list, Requirement{Key: key, Operator: string(meta.LabelSelectorOpIn), Values: []string{doc.MatchLabels[key]}})
	}
	for _, e := range doc.MatchExpressions {
		list = append(list, Requirement{Key: e.Key, Operator: string(e.Operator), Values: e.Values})
	}
	return list
}

// Namespaces returns the names of the only namespaces that meet the requirements, by the label that
// the API server sets to the name; nil for any. Values with wildcards select any.
func Namespaces(list []Requirement) []string {
	var names []string
	for _, r := range list {
		if r.Key != core.LabelMetadataName || r.Operator != string(meta.LabelSelectorOpIn) {
			continue
		}
		if slices.ContainsFunc(r.Values, wildcard.Contains) {
			continue
		}
		if names == nil {
			names = slices.Clone(r.Values)
			continue
		}
		names = slices.DeleteFunc(names, func(n string) bool { return !slices.Contains(r.Values, n) })
	}
	return names
}

// Requirement is one of a label selector, as Kubernetes writes it. The operator is In, NotIn,
// Exists or DoesNotExist. The values of In may be patterns, as in Kyverno's matchLabels.
type Requirement struct {
	Key, Operator string
	Values        []string
}

// Contradiction returns why no labels meet all requirements; empty if some may.
func Contradiction(all []Requirement) string {
	for i, first := range all {
		var of []Requirement
		for _, r := range all[i:] {
			if r.Key == first.Key {
				of = append(of, r)
			}
		}
		if !mayBeAbsent(of) && !mayBePresent(of) {
			texts := make([]string, len(of))
			for i, r := range of {
				texts[i] = strings.TrimSpace(r.Operator + " " + strings.Join(r.Values, ", "))
			}
			return fmt.Sprintf("%s is to be %s", first.Key, strings.Join(texts, " and "))
		}
	}
	return ""
}

func mayBeAbsent(of []Requirement) bool {
	return !slices.ContainsFunc(of, func(r Requirement) bool { return r.Operator == "In" || r.Operator == "Exists" })
}

// mayBePresent reports whether a value meets the requirements of one key. Without In the values
// are endless.
func mayBePresent(of []Requirement) bool {
	if slices.ContainsFunc(of, func(r Requirement) bool { return r.Operator == "DoesNotExist" }) {
		return false
	}
	i := slices.IndexFunc(of, func(r Requirement) bool {
		return r.Operator == "In" && !slices.ContainsFunc(r.Values, wildcard.Contains)
	})
	if i < 0 {
		return mayOverlap(of)
	}
	return slices.ContainsFunc(of[i].Values, func(value string) bool {
		return !slices.ContainsFunc(of, func(r Requirement) bool {
			return r.Operator == "In" && !wildcard.Any(r.Values, value) || r.Operator == "NotIn" && slices.Contains(r.Values, value)
		})
	})
}

// mayOverlap reports whether any two requirements have a value in common, of which each has a
// pattern.
func mayOverlap(of []Requirement) bool {
	for i, r := range of {
		for _, other := range of[:i] {
			meet := func(a string) bool {
				return slices.ContainsFunc(other.Values, func(b string) bool { return wildcard.Overlap(a, b) })
			}
			if r.Operator == "In" && other.Operator == "In" && !slices.ContainsFunc(r.Values, meet) {
				return false
			}
		}
	}
	return true
}

// CheckKey returns why no key of a label matches a pattern; empty if one may. A text with a
// variable is known once it is filled in.
func CheckKey(pattern string) string { return check(pattern, validation.IsQualifiedName) }

// CheckValue is CheckKey for values.
func CheckValue(pattern string) string { return check(pattern, validation.IsValidLabelValue) }

// check puts a letter in place of each wildcard: a star may be nothing as well.
func check(pattern string, problems func(string) []string) string {
	letters := strings.ReplaceAll(pattern, "?", "a")
	if strings.Contains(pattern, "{{") || len(problems(strings.ReplaceAll(letters, "*", ""))) == 0 {
		return ""
	}
	return strings.Join(problems(strings.ReplaceAll(letters, "*", "a")), "; ")
}
