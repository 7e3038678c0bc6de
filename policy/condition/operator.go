package condition

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// operator judges a key and a value; unsure says why it cannot.
type operator func(p pair) (held bool, unsure string)

type pair struct {
	key, value any
	// keyIsPattern allows wildcards in the key. Only a key that the policy
	// itself spells out may have them: a `*` that arrives in a label or an
	// attestation would else be a member of every set.
	keyIsPattern bool
}

// Operators are the names of all operators, in Kyverno's order.
func Operators() []string {
	return []string{
		"Equal", "Equals", "NotEqual", "NotEquals", "In", "AnyIn", "AllIn", "NotIn", "AnyNotIn", "AllNotIn",
		"GreaterThanOrEquals", "GreaterThan", "LessThanOrEquals", "LessThan",
		"DurationGreaterThanOrEquals", "DurationGreaterThan", "DurationLessThanOrEquals", "DurationLessThan",
	}
}

func operatorOf(name string) operator {
	switch name {
	case "Equal", "Equals":
		return func(p pair) (bool, string) { return equal(p.key, p.value), "" }
	case "NotEqual", "NotEquals":
		return notEqual
	case "In", "AllIn":
		return member(func(in, all int) bool { return in == all })
	case "AnyIn":
		return member(func(in, _ int) bool { return in > 0 })
	case "NotIn", "AnyNotIn":
		return member(func(in, all int) bool { return in < all })
	case "AllNotIn":
		return member(func(in, _ int) bool { return in == 0 })
	case "GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals":
		return ordered(name, order)
	case "DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals":
		return ordered(strings.TrimPrefix(name, "Duration"), orderDurations)
	}
	return nil
}

// equal compares durations and quantities by what they are worth, lists and
// objects by their content, and other strings with value as a pattern of
// wildcards.
func equal(key, value any) bool {
	switch k := key.(type) {
	case string, float64:
		if o, ok := orderDurationStrings(key, value); ok {
			return o == 0
		}
		if o, ok := orderQuantities(key, value); ok {
			return o == 0
		}
		text, isText := k.(string)
		pattern, isPattern := value.(string)
		if isText && isPattern {
			return wildcard.Match(pattern, text)
		}
		return key == value
	}
	return reflect.DeepEqual(key, value)
}

// notEqual does not hold for a null key: nothing is known that could differ.
func notEqual(p pair) (bool, string) {
	if p.key == nil && p.value != nil {
		return false, "the key is null"
	}
	return !equal(p.key, p.value), ""
}

// member makes a set operator: decide gets how many keys are in the values,
// and how many keys there are.
func member(decide func(in, all int) bool) operator {
	return func(p pair) (bool, string) {
		var keys []any
		switch k := p.key.(type) {
		case nil:
			return false, "the key is null"
		case map[string]any:
			return false, "the key is an object"
		case []any:
			keys = k
		default:
			keys = []any{k}
		}
		contains, unsure := p.set()
		if unsure != "" {
			return false, unsure
		}
		in := 0
		for _, k := range keys {
			if contains(k) {
				in++
			}
		}
		return decide(in, len(keys)), ""
	}
}

// set reads the value of a set operator: a list; a string that is a range, a
// list in JSON, or one pattern; or one number or boolean.
func (p pair) set() (contains func(any) bool, unsure string) {
	switch v := p.value.(type) {
	case nil:
		return nil, "the value is null"
	case map[string]any:
		return nil, "the value is an object"
	case []any:
		return func(key any) bool { return p.inList(key, v) }, ""
	case string:
		if low, high, not, ok := parseRange(v); ok {
			return func(key any) bool { return inRange(key, low, high) != not }, ""
		}
		var items []any
		if strings.HasPrefix(strings.TrimSpace(v), "[") && json.Unmarshal([]byte(v), &items) == nil {
			return func(key any) bool { return p.matches(key, v) || p.inList(key, items) }, ""
		}
	}
	return func(key any) bool { return p.matches(key, p.value) }, ""
}

func (p pair) inList(key any, items []any) bool {
	for _, item := range items {
		if p.matches(key, item) {
			return true
		}
	}
	return false
}

// matches compares as text; the item may be a pattern, and the key where it is
// the policy's own.
func (p pair) matches(key, item any) bool {
	k, i := plain(key), plain(item)
	return k == i || wildcard.Match(i, k) || p.keyIsPattern && wildcard.Match(k, i)
}

// plain is a scalar as a policy would write it.
func plain(value any) string {
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return jmespath.Text(value)
}

// parseRange reads "1-10", "1Gi!-2Gi" (outside of) and the like.
func parseRange(s string) (low, high string, not, ok bool) {
	const maxRange = 100
	if len(s) > maxRange {
		return "", "", false, false
	}
	for i := 1; i < len(s); i++ {
		if s[i] != '-' {
			continue
		}
		low, high = s[:i], s[i+1:]
		if low, not = strings.CutSuffix(low, "!"); isAmount(low) && isAmount(high) {
			return low, high, not, true
		}
	}
	return "", "", false, false
}

// isAmount reports whether s is a number with an optional sign and unit.
func isAmount(s string) bool {
	s = strings.TrimLeft(s, "+-")
	unit := strings.TrimLeft(s, "0123456789.")
	number := s[:len(s)-len(unit)]
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return false
	}
	return !strings.ContainsFunc(unit, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
}

func inRange(key any, low, high string) bool {
	atLeast, ok := order(key, low)
	if !ok || atLeast < 0 {
		return false
	}
	atMost, ok := order(key, high)
	return ok && atMost <= 0
}

// ordered makes an operator of an order.
func ordered(name string, order func(key, value any) (int, bool)) operator {
	return func(p pair) (bool, string) {
		o, ok := order(p.key, p.value)
		if !ok {
			return false, "they cannot be ordered"
		}
		switch name {
		case "GreaterThan":
			return o > 0, ""
		case "GreaterThanOrEquals":
			return o >= 0, ""
		case "LessThan":
			return o < 0, ""
		}
		return o <= 0, ""
	}
}

// order tries durations, quantities and numbers, and semantic versions.
func order(key, value any) (int, bool) {
	if o, ok := orderDurationStrings(key, value); ok {
		return o, true
	}
	if o, ok := orderQuantities(key, value); ok {
		return o, true
	}
	k, ok1 := key.(string)
	v, ok2 := value.(string)
	if !ok1 || !ok2 {
		return 0, false
	}
	kv, err1 := semver.Parse(k)
	vv, err2 := semver.Parse(v)
	return kv.Compare(vv), err1 == nil && err2 == nil
}

// orderDurationStrings needs one duration that is written as such; a number
// beside it counts seconds. "0" alone is none.
func orderDurationStrings(key, value any) (int, bool) {
	isDuration := func(side any) bool {
		s, ok := side.(string)
		if !ok || s == "0" {
			return false
		}
		_, err := time.ParseDuration(s)
		return err == nil
	}
	if !isDuration(key) && !isDuration(value) {
		return 0, false
	}
	return orderDurations(key, value)
}

func orderDurations(key, value any) (int, bool) {
	k, ok1 := secondsOf(key)
	v, ok2 := secondsOf(value)
	switch {
	case !ok1 || !ok2:
		return 0, false
	case k < v:
		return -1, true
	case k > v:
		return 1, true
	}
	return 0, true
}

func secondsOf(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, !math.IsNaN(v)
	case string:
		d, err := time.ParseDuration(v)
		return d.Seconds(), err == nil
	}
	return 0, false
}

// orderQuantities orders numbers, strings that are quantities, and mixtures.
func orderQuantities(key, value any) (int, bool) {
	k, isNumber1 := key.(float64)
	v, isNumber2 := value.(float64)
	if isNumber1 && isNumber2 {
		switch {
		case k < v:
			return -1, true
		case k > v:
			return 1, true
		}
		return 0, k == v
	}
	if !scalar(key) || !scalar(value) {
		return 0, false
	}
	kq, err1 := jmespath.ParseQuantity(plain(key))
	vq, err2 := jmespath.ParseQuantity(plain(value))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return kq.Cmp(vq), true
}

func scalar(value any) bool {
	switch value.(type) {
	case string, float64:
		return true
	}
	return false
}
