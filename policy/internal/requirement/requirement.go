// Package requirement finds requirements of labels that no labels meet.
package requirement

import (
	"fmt"
	"slices"
	"strings"
)

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
