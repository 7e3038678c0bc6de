package condition

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// operator judges a key and a value.
type operator func(p pair) judgement

// judgement is what an operator evaluates to: held, not held or indeterminate; why is
// the reason for the last, and where the operator is not for key and value.
type judgement struct {
	held, indeterminate bool
	why                 string
}

const (
	foreignWildcard = "it depends on a wildcard from the data, and only one in the policy's text counts"
	foreignRange    = "it depends on a range from the data, and only one with its dash in the policy's text counts"
	outsideOfOrder  = "the key cannot be ordered within the range"
	unlikeKinds     = "a text, a number, a boolean, a list, an object and null are not compared with one another"
	unitAlone       = "a unit without a number is zero in Kubernetes"
	inexact         = "numbers past 2^53 cannot be distinguished: write them as text"
	tooMuch         = "there is too much in the key and the value to compare them"
)

func judge(held bool) judgement { return judgement{held: held} }

func indeterminate(why string) judgement { return judgement{indeterminate: true, why: why} }

// pair is a key and a value.
type pair struct {
	key, value any
	// spelledKey and spelled distinguish the wildcards of the policy from those of the data.
	spelledKey, spelled spelling
	// covers: a wildcard in the data matches texts by its pattern. Otherwise it makes the
	// condition indeterminate if it decides.
	covers bool
	// foreign: a statement or an image brings key or value.
	foreign bool
	// absence: the operator holds for a key that is not in the value.
	absence bool
	// work is what may still be compared.
	work *work
}

// null is the result for a null key or value. It does not hold, as in Kyverno. Where the
// operator is negated, or the data foreign, it is indeterminate: nothing shows that the
// field is not there for a reason.
func (p pair) null(why string) judgement {
	if p.foreign || p.absence {
		return indeterminate(why)
	}
	return judgement{why: why}
}

const (
	// maxWork bounds the comparisons of one condition, in pairs of short texts: the author of the
	// object may control both sides. It takes tenths of a second.
	maxWork = 4 << 20
	// workBytes is how many bytes are looked at for one unit of work.
	workBytes = 64
)

// work is what a condition may still compare.
type work int

// spend pays for matching a pattern, and reports whether there was enough left.
func (w *work) spend(pattern, text string) bool {
	cost := 1 + (len(pattern)+len(text))/workBytes
	if strings.Contains(pattern, "?") {
		cost = 1 + len(pattern)*len(text)/workBytes
	}
	if *w < work(cost) {
		*w = 0
		return false
	}
	*w -= work(cost)
	return true
}

// Operators are the names of all operators, in Kyverno's order.
func Operators() []string {
	return []string{
		"Equal", "Equals", "NotEqual", "NotEquals", "In", "AnyIn", "AllIn", "NotIn", "AnyNotIn", "AllNotIn",
		"GreaterThanOrEquals", "GreaterThan", "LessThanOrEquals", "LessThan",
		"DurationGreaterThanOrEquals", "DurationGreaterThan", "DurationLessThanOrEquals", "DurationLessThan",
	}
}

// negated reports whether an operator holds for a missing value.
func negated(name string) bool {
	return strings.HasPrefix(name, "Not") || strings.Contains(name, "NotIn")
}

func operatorOf(name string) operator {
	switch name {
	case "Equal", "Equals":
		return pair.equals
	case "NotEqual", "NotEquals":
		return notEqual
	case "In", "AllIn":
		return member(false, func(in, all int) bool { return in == all })
	case "AnyIn":
		return member(false, func(in, _ int) bool { return in > 0 })
	case "NotIn", "AnyNotIn":
		return member(true, func(in, all int) bool { return in < all })
	case "AllNotIn":
		return member(true, func(in, _ int) bool { return in == 0 })
	case "GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals":
		return ordered(name, order)
	case "DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals":
		return ordered(strings.TrimPrefix(name, "Duration"), orderDurations)
	}
	return nil
}

// equal compares durations and quantities by their amounts, lists and objects by their content,
// and other strings with value as a pattern of wildcards.
func (p pair) equal() (bool, string) {
	if doubtful(p.key, p.value) {
		return false, inexact
	}
	if o, ok := orderDurationStrings(p.key, p.value); ok {
		return o == 0, ""
	}
	if o, ok := orderQuantities(p.key, p.value); ok {
		return o == 0, ""
	}
	text, isText := p.key.(string)
	pattern, isPattern := p.value.(string)
	if isText && isPattern && (isUnitAlone(text, pattern) || isUnitAlone(pattern, text)) {
		return false, unitAlone
	}
	if isText && isPattern {
		if p.spelledKey.plain { // the policy's own key is a text
			return p.match(pattern, text, p.spelled.own)
		}
		return p.both(text, pattern, p.spelledKey.own, p.spelled.own)
	}
	if keys, ok := p.key.([]any); ok && !reflect.DeepEqual(p.key, p.value) {
		return false, p.covering(keys)
	}
	return reflect.DeepEqual(p.key, p.value), ""
}

// covering returns why a list may equal another one: an item of either is a wildcard from the
// data that matches an item of the other one.
func (p pair) covering(keys []any) string {
	values, ok := p.value.([]any)
	if !ok || p.spelledKey.plain && p.spelled.plain {
		return ""
	}
	for i, key := range keys {
		for j, value := range values {
			k, isText := key.(string)
			v, alsoText := value.(string)
			switch {
			case !isText || !alsoText || k == v || !wildcard.Contains(k+v):
			case !p.work.spend("?"+k, v):
				return tooMuch
			case wildcards(k) > p.spelledKey.item(i) && wildcard.Match(k, v), wildcards(v) > p.spelled.item(j) && wildcard.Match(v, k):
				return foreignWildcard
			}
		}
	}
	return ""
}

// match matches a pattern with own wildcards from the policy. If the pattern has others, a match
// that is not literal is in doubt, unless they cover. A text that does not match the whole
// pattern does not match in any other reading either.
func (p pair) match(pattern, text string, own int) (bool, string) {
	switch {
	case pattern == text:
		return true, ""
	case !p.work.spend(pattern, text):
		return false, tooMuch
	case !wildcard.Match(pattern, text):
		return false, ""
	case wildcards(pattern) > own && !p.covers:
		return false, foreignWildcard
	}
	return true, ""
}

// both matches with the wildcards of either side. Where both have some, a text that both
// match makes it a match in one reading.
func (p pair) both(key, value string, ownOfKey, own int) (bool, string) {
	in, doubt := p.match(value, key, own)
	if in || doubt == tooMuch || !wildcard.Contains(key) {
		return in, doubt
	}
	covered, why := p.match(key, value, ownOfKey)
	switch {
	case covered || why != "":
		return covered, why
	case doubt != "" || !wildcard.Contains(value):
		return false, doubt
	case !p.work.spend("?"+key, value):
		return false, tooMuch
	case wildcard.Overlap(key, value):
		return false, foreignWildcard
	}
	return false, ""
}

// equals is indeterminate for a key of another kind that may mean the value, as "true"
// for true; in foreign data for any key of another kind. Two missing values of the data are not equal, as in Kyverno:
// a null has to be written out.
func (p pair) equals() judgement {
	same, doubt := p.equal()
	switch {
	case p.key == nil && p.value == nil && !p.spelledKey.plain && !p.spelled.plain:
		return p.null("both sides are null")
	case doubt != "":
		return indeterminate(doubt)
	case p.unlike() && (p.foreign || p.standsFor(p.key, p.value, 0)):
		return indeterminate(unlikeKinds)
	case p.unlike():
		return judgement{why: unlikeKinds}
	case same && p.likened():
		return indeterminate(unlikeKinds)
	}
	return judge(same)
}

// likened reports whether a text and a number are equal here in amount, and not in Kyverno, which
// takes a text for a number only as the value of a number, and a duration only as the key.
func (p pair) likened() bool {
	switch key := p.key.(type) {
	case string:
		_, err := time.ParseDuration(key)
		_, isNumber := p.value.(float64)
		return isNumber && (err != nil || key == "0")
	case float64:
		value, isText := p.value.(string)
		_, err := strconv.ParseFloat(value, 64)
		return isText && err != nil
	}
	return false
}

// notEqual does not hold for a null key, nor for one of another kind that may mean the
// value.
func notEqual(p pair) judgement {
	p.absence = true
	same, doubt := p.equal()
	switch {
	case p.key == nil && p.value != nil:
		return p.null("the key is null")
	case p.key != nil && p.value == nil && !p.spelled.plain:
		return p.null("the value is null")
	case p.unlike() && (p.foreign || p.standsFor(p.key, p.value, 0)):
		return indeterminate(unlikeKinds)
	case doubt != "":
		return indeterminate(doubt)
	case same && p.likened():
		return indeterminate(unlikeKinds)
	}
	return judge(!same)
}

// unlike reports whether key and value are of different kinds and have no order
// either, as numbers and quantities have; null is of any kind.
func (p pair) unlike() bool {
	_, ordered := order(p.key, p.value)
	return p.key != nil && p.value != nil && !ordered && reflect.TypeOf(p.key) != reflect.TypeOf(p.value)
}

// maxStandsFor bounds how deep a value is looked for in lists and objects.
const maxStandsFor = 20

// standsFor reports whether a value of one kind may be meant as one of another kind: a text
// that reads as it, or a list or an object that holds it.
func (p pair) standsFor(a, b any, depth int) bool {
	if depth > maxStandsFor || *p.work <= 0 {
		return true
	}
	*p.work--
	inside := func(item any) bool { return item != nil && p.standsFor(item, b, depth+1) }
	switch v := a.(type) {
	case []any:
		if _, alike := b.([]any); !alike {
			return slices.ContainsFunc(v, inside)
		}
	case map[string]any:
		if _, alike := b.(map[string]any); !alike {
			for _, item := range v {
				if inside(item) {
					return true
				}
			}
			return false
		}
	default:
		if kind := setKind(b); kind == "list" || kind == "object" {
			return p.standsFor(b, a, depth+1)
		}
		x, y := readable(a), readable(b)
		return x == y || wildcard.Match(y, x) || wildcard.Match(x, y)
	}
	return reflect.DeepEqual(a, b)
}

// readable is a scalar as a person reads it: without regard to space and case, and as a
// number where it is one.
func readable(value any) string {
	text := strings.ToLower(strings.TrimSpace(plain(value)))
	switch text {
	case "yes", "on":
		return "true"
	case "no", "off":
		return "false"
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		return plain(number)
	}
	return text
}
