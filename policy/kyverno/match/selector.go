package match

import (
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// Validate refuses selectors that could not be evaluated.
func (s *Selector) Validate(path string) error {
	if s == nil {
		return nil
	}
	for i, e := range s.MatchExpressions {
		place := document.Join(path, "matchExpressions["+strconv.Itoa(i)+"]")
		switch e.Operator {
		case "In", "NotIn":
			if len(e.Values) == 0 {
				return field.Fail(place+".values", "%s wants at least one value", e.Operator)
			}
		case "Exists", "DoesNotExist":
			if len(e.Values) > 0 {
				return field.Fail(place+".values", "%s wants no values", e.Operator)
			}
		default:
			return field.Fail(place+".operator", "unknown operator %q: want In, NotIn, Exists or DoesNotExist", e.Operator)
		}
		if e.Key == "" {
			return field.Fail(place+".key", "is empty")
		}
	}
	return nil
}

// Matches as Kubernetes does, with Kyverno's wildcards in keys and values of
// matchLabels.
func (s *Selector) Matches(labels map[string]string) bool {
	if !containsAll(labels, s.MatchLabels) {
		return false
	}
	for _, e := range s.MatchExpressions {
		value, has := labels[e.Key]
		held := false
		switch e.Operator {
		case "In":
			held = has && slices.Contains(e.Values, value)
		case "NotIn":
			held = !has || !slices.Contains(e.Values, value)
		case "Exists":
			held = has
		case "DoesNotExist":
			held = !has
		}
		if !held {
			return false
		}
	}
	return true
}

// containsAll reports whether each pattern of key and value is met by an entry.
func containsAll(entries, patterns map[string]string) bool {
	for key, value := range patterns {
		if !containsOne(entries, key, value) {
			return false
		}
	}
	return true
}

func containsOne(entries map[string]string, key, value string) bool {
	if !wildcard.Contains(key) {
		got, ok := entries[key]
		return ok && wildcard.Match(value, got)
	}
	for k, v := range entries {
		if wildcard.Match(key, k) && wildcard.Match(value, v) {
			return true
		}
	}
	return false
}

// texts returns the string entries of a JSON object, such as labels.
func texts(value any) map[string]string {
	object, _ := value.(map[string]any)
	result := make(map[string]string, len(object))
	for key, item := range object {
		if s, ok := item.(string); ok {
			result[key] = s
		}
	}
	return result
}
