package match

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// selects reports whether the selector has a requirement; one without any matches every
// set of labels.
func (s *Selector) selects() bool { return len(s.MatchLabels)+len(s.MatchExpressions) > 0 }

// Matches as Kubernetes does, with Kyverno's wildcards in keys and values of
// matchLabels.
func (s *Selector) Matches(labels map[string]string) bool {
	return s.matches(entries{texts: labels}).True()
}

// matches is Matches for labels that may not all be known.
func (s *Selector) matches(labels entries) logic.Value {
	result := containsAll(labels, s.MatchLabels)
	for i := range s.MatchExpressions {
		if result.False() {
			return result
		}
		switch v := s.MatchExpressions[i].matches(labels); {
		case v.False():
			return v
		case result.Cause() == nil:
			result = v
		}
	}
	return result
}

func (e *requirement) matches(labels entries) logic.Value {
	value, has, err := labels.get(e.Key)
	switch {
	case e.Operator == "Exists" && (has || err == nil):
		return logic.Is(has)
	case e.Operator == "DoesNotExist" && (has || err == nil):
		return logic.Is(!has)
	case err != nil:
		return logic.Indeterminate(err)
	case e.Operator == "In":
		return logic.Is(has && slices.Contains(e.Values, value))
	}
	return logic.Is(!has || !slices.Contains(e.Values, value)) // NotIn; others are refused
}

// entries are labels or annotations: texts, or a decoded object with values of any type. A value
// that is not a text is present, and unknown.
type entries struct {
	texts   map[string]string
	decoded map[string]any
	kind    string // label or annotation, for errors
	err     error  // why none is known
}

// entriesOf reads a member of metadata. The API server admits texts alone; files may hold
// anything.
func entriesOf(value any, kind string) entries {
	switch value := value.(type) {
	case nil:
		return entries{kind: kind}
	case map[string]any:
		return entries{decoded: value, kind: kind}
	}
	return entries{kind: kind, err: fmt.Errorf("the rule selects by %ss, and the object's are not a map of strings", kind)}
}

// get returns an entry. An error with has means that the entry exists with an unknown value.
func (e entries) get(key string) (value string, has bool, err error) {
	if e.err != nil {
		return "", false, e.err
	}
	if e.decoded == nil {
		value, has = e.texts[key]
		return value, has, nil
	}
	item, has := e.decoded[key]
	if !has {
		return "", false, nil
	}
	if value, isText := item.(string); isText {
		return value, true, nil
	}
	return "", true, fmt.Errorf("the rule selects by the %s %s, and the object's is not a string", e.kind, key)
}

// containsAll reports whether each pattern of key and value is met by an entry.
func containsAll(have entries, patterns map[string]string) logic.Value {
	result := logic.Is(true)
	for key, value := range patterns {
		switch v := have.contains(key, value); {
		case v.False():
			return v
		case result.Cause() == nil:
			result = v
		}
	}
	return result
}

func (e entries) contains(key, pattern string) logic.Value {
	if e.err != nil || !wildcard.Contains(key) {
		return e.holds(key, pattern)
	}
	for k, v := range e.texts {
		if wildcard.Match(key, k) && wildcard.Match(pattern, v) {
			return logic.Is(true)
		}
	}
	result := logic.Is(false)
	for k := range e.decoded {
		if !wildcard.Match(key, k) {
			continue
		}
		switch v := e.holds(k, pattern); {
		case v.True():
			return v
		case v.Cause() != nil:
			result = v
		}
	}
	return result
}

// holds reports whether the entry of a key matches a pattern.
func (e entries) holds(key, pattern string) logic.Value {
	value, has, err := e.get(key)
	if err != nil {
		return logic.Indeterminate(err)
	}
	return logic.Is(has && wildcard.Match(pattern, value))
}
