package condition

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// reference evaluates conditions as Kyverno 1.19.1 does (pkg/engine/variables/operator), where a difference would admit
// what Kyverno denies. The operators of this package differ from it on purpose.
type reference struct {
	work work
	// wholeKey and wholeValue: the whole numbers of a side are int64, as those of a request may be in Kyverno. Those of
	// policies and of functions are float64, with another text (1e+06) and other comparisons with text.
	wholeKey, wholeValue bool
	// unknown: the result is an error in Kyverno, or takes too much work.
	unknown bool
}

// agrees reports whether a condition certainly has a result in Kyverno, wherever its numbers come from.
func agrees(operator string, key, value any, want bool) bool {
	for _, wholeKey := range readings(key) {
		for _, wholeValue := range readings(value) {
			r := reference{work: maxWork, wholeKey: wholeKey, wholeValue: wholeValue}
			if held := r.holds(operator, key, value); held != want || r.unknown {
				return false
			}
		}
	}
	return true
}

// readings are those of the numbers of a side.
func readings(side any) []bool {
	list, isList := side.([]any)
	if isWhole(side) || isList && slices.ContainsFunc(list, isWhole) {
		return []bool{false, true}
	}
	return []bool{false}
}

func isWhole(value any) bool {
	number, ok := value.(float64)
	return ok && number == math.Trunc(number) && math.Abs(number) < math.MaxInt64
}

// textOf is the text of a value in Kyverno.
func textOf(value any, whole bool) string {
	if number, ok := value.(float64); ok && whole && isWhole(value) {
		return strconv.FormatInt(int64(number), 10)
	}
	return fmt.Sprint(value)
}

// holds reports whether a condition holds in Kyverno; false if that is unknown.
func (r *reference) holds(operator string, key, value any) bool {
	switch operator {
	case "Equal", "Equals":
		return r.equal(key, value)
	case "NotEqual", "NotEquals":
		return key != nil && !r.equal(key, value)
	case "GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals":
		k, v, ok := r.amounts(key, value)
		return ok && !math.IsNaN(k) && !math.IsNaN(v) && ordering(operator, cmp.Compare(k, v))
	case "DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals":
		k, v, ok := durations(key, value)
		return ok && ordering(strings.TrimPrefix(operator, "Duration"), cmp.Compare(k, v))
	}
	switch k := key.(type) {
	case string, float64, bool:
		return r.one(operator, textOf(k, r.wholeKey), value)
	case []any:
		return r.several(operator, k, value)
	}
	return false
}

// one is a set operator with a key that is no list.
func (r *reference) one(operator, key string, value any) bool {
	var in bool
	old := operator == "In" || operator == "NotIn"
	switch v := value.(type) {
	case []any:
		in = slices.ContainsFunc(v, func(item any) bool { return r.alike(key, textOf(item, r.wholeValue)) })
	case string:
		switch list, ok := listIn(v, !old); {
		case r.match(v, key):
			in = true
		case !old && r.isRange(v):
			in = r.within(key, v)
		case !ok:
			return false
		default:
			in = slices.Contains(list, key)
		}
	default:
		return false
	}
	return in != negated(operator)
}

// several is a set operator with a list of keys.
func (r *reference) several(operator string, key []any, value any) bool {
	var keys []string
	old := operator == "In" || operator == "NotIn"
	for _, k := range key {
		if _, isText := k.(string); !isText && old {
			r.unknown = true // it ends in a panic there
			return false
		}
		keys = append(keys, textOf(k, r.wholeKey))
	}
	var list []string
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if _, isText := item.(string); !isText && old {
				return false
			}
			list = append(list, textOf(item, r.wholeValue))
		}
	case string:
		if len(keys) == 1 && keys[0] == v {
			return operator == "NotIn" || !negated(operator)
		}
		if !old && r.isRange(v) {
			return r.severalWithin(operator, keys, v)
		}
		var isList bool
		list, isList = listIn(v, !old)
		if !isList {
			return false
		}
	case float64, bool:
		if !strings.HasPrefix(operator, "Any") {
			return false
		}
		list = []string{textOf(v, r.wholeValue)}
	default:
		return false
	}
	return quantified(operator, keys, func(k string) bool {
		if old {
			return slices.Contains(list, k)
		}
		return slices.ContainsFunc(list, func(item string) bool { return r.alike(k, item) })
	})
}

// quantified combines what is in the set.
func quantified(operator string, keys []string, in func(string) bool) bool {
	out := func(k string) bool { return !in(k) }
	switch operator {
	case "AnyIn":
		return slices.ContainsFunc(keys, in)
	case "AllNotIn":
		return !slices.ContainsFunc(keys, in)
	case "AnyNotIn", "NotIn":
		return slices.ContainsFunc(keys, out)
	}
	return !slices.ContainsFunc(keys, out)
}

// severalWithin reads a range; outside of it is a range of its own there, by its first dash.
func (r *reference) severalWithin(operator string, keys []string, v string) bool {
	if operator != "AnyNotIn" {
		return quantified(operator, keys, func(k string) bool { return r.within(k, v) })
	}
	low, high, ok := parseRange(v)
	if strings.HasPrefix(v, "-") { // then it reads !-5-10, which is not the text -5-10
		return slices.ContainsFunc(keys, func(k string) bool { return k != v })
	}
	return slices.ContainsFunc(keys, func(k string) bool {
		below, ok1 := r.between(k, low)
		above, ok2 := r.between(k, high)
		return ok && (ok1 && below < 0 || ok2 && above > 0)
	})
}

// isRange reports whether a text is a range there. A bar in one, and one past the bound of this project, is unknown.
func (r *reference) isRange(v string) bool {
	_, _, is := parseRange(v)
	r.unknown = r.unknown || is && strings.Contains(v, "|") || len(v) > maxRange && rangeForm.MatchString(v)
	return is
}

func (r *reference) within(key, v string) bool {
	low, high, _ := parseRange(v)
	atLeast, ok1 := r.between(key, low)
	atMost, ok2 := r.between(key, high)
	return key == v || ok1 && ok2 && atLeast >= 0 && atMost <= 0
}

// between orders two texts as durations or as quantities.
func (r *reference) between(a, b string) (int, bool) {
	x, err1 := time.ParseDuration(a)
	y, err2 := time.ParseDuration(b)
	if err1 == nil && err2 == nil {
		return int(max(-1, min(1, x-y))), true
	}
	return r.quantities(a, b)
}

// listIn reads a text as a list of texts in JSON, or as one text where it is no JSON and that is allowed.
func listIn(v string, alone bool) ([]string, bool) {
	var list []string
	if !json.Valid([]byte(v)) {
		return []string{v}, alone
	}
	err := json.Unmarshal([]byte(v), &list)
	return list, err == nil
}

// alike matches with the wildcards of either side.
func (r *reference) alike(a, b string) bool { return r.match(a, b) || r.match(b, a) }

func (r *reference) match(pattern, text string) bool {
	if !r.work.spend(pattern, text) {
		r.unknown = true
		return false
	}
	return wildcard.Match(pattern, text)
}

// quantities orders two texts if both are quantities. That is unknown where one is past the bounds of this project, as
// 12e4567 is, which may be a short hash, unless the other is no quantity.
func (r *reference) quantities(a, b string) (order int, ok bool) {
	p, err1 := quantity(a)
	q, err2 := quantity(b)
	large1, large2 := errors.Is(err1, jmespath.ErrTooLarge), errors.Is(err2, jmespath.ErrTooLarge)
	r.unknown = r.unknown || large1 && (large2 || err2 == nil) || large2 && err1 == nil
	return p.Cmp(q), err1 == nil && err2 == nil
}

func quantity(text string) (resource.Quantity, error) {
	q, err := jmespath.ParseQuantity(text)
	if err != nil && !errors.Is(err, jmespath.ErrTooLarge) { // Kubernetes parses more, such as a unit alone
		return resource.ParseQuantity(text)
	}
	return q, err
}

func (r *reference) equal(key, value any) bool {
	pattern, isText := value.(string)
	if k, v, ok := seconds(key, value); ok {
		return k == v
	}
	switch k := key.(type) {
	case nil:
		return false
	case float64:
		number, err := strconv.ParseFloat(pattern, 64)
		if r.wholeKey && isWhole(k) {
			_, err = strconv.ParseInt(pattern, 10, 64)
		}
		return reflect.DeepEqual(key, value) || isText && err == nil && number == k
	case string:
		if !isText || k == pattern {
			return isText
		}
		if order, ok := r.quantities(k, pattern); ok {
			return order == 0
		}
		if !r.match(pattern, k) {
			return false
		}
		_, is := r.quantities(k, k)
		return !is
	}
	return reflect.DeepEqual(key, value)
}

// amounts are the two sides of an order.
func (r *reference) amounts(key, value any) (k, v float64, ok bool) {
	if k, v, ok := seconds(key, value); ok {
		return k, v, true
	}
	k, isNumber := key.(float64)
	text, isText := key.(string)
	other, alsoText := value.(string)
	switch {
	case !isNumber && !isText:
		return 0, 0, false
	case isText && alsoText:
		if order, ok := r.quantities(text, other); ok {
			return float64(order), 0, true
		}
	}
	if isText {
		number, err := strconv.ParseFloat(text, 64)
		if err != nil {
			a, err1 := semver.Parse(text)
			b, err2 := semver.Parse(other)
			return float64(a.Compare(b)), 0, alsoText && err1 == nil && err2 == nil
		}
		k = number
		if k, v, ok := seconds(number, value); ok {
			return k, v, true
		}
	}
	if alsoText {
		number, err := strconv.ParseFloat(other, 64)
		return k, number, err == nil
	}
	v, ok = value.(float64)
	return k, v, ok
}

// seconds are two durations, of which one is written as such; a number is of whole seconds.
func seconds(key, value any) (k, v float64, ok bool) {
	if key == "0" || value == "0" {
		return 0, 0, false
	}
	_, isText := key.(string)
	_, alsoText := value.(string)
	if !isText && !alsoText {
		return 0, 0, false
	}
	return durations(key, value)
}

func durations(key, value any) (k, v float64, ok bool) {
	one := func(side any) (time.Duration, bool) {
		switch s := side.(type) {
		case float64:
			return time.Duration(s) * time.Second, true
		case string:
			d, err := time.ParseDuration(s)
			return d, err == nil
		}
		return 0, false
	}
	a, ok1 := one(key)
	b, ok2 := one(value)
	return a.Seconds(), b.Seconds(), ok1 && ok2
}
