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
		if slices.ContainsFunc(r.Values, func(v string) bool { return strings.ContainsAny(v, "*?") }) {
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
// Exists or DoesNotExist.
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
	i := slices.IndexFunc(of, func(r Requirement) bool { return r.Operator == "In" })
	return i < 0 || slices.ContainsFunc(of[i].Values, func(value string) bool {
		return !slices.ContainsFunc(of, func(r Requirement) bool {
			return r.Operator == "In" && !slices.Contains(r.Values, value) || r.Operator == "NotIn" && slices.Contains(r.Values, value)
		})
	})
}
