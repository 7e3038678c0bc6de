package condition

import (
	"reflect"
	"strings"

	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// operator judges a key and a value.
type operator func(p pair) judgement

// judgement is what an operator says; unsure says why it cannot judge.
type judgement struct {
	held   bool
	unsure string
	// either says that it would hold in one reading and not in another.
	either bool
}

const (
	foreignWildcard = "it hinges on a wildcard that arrived with the data, and only one that the policy spells out is one"
	foreignRange    = "it hinges on a range that arrived with the data, and only one whose dash the policy spells out is one"
	outsideOfOrder  = "the key cannot be ordered within the range"
	unlikeKinds     = "a text, a number, a boolean, a list, an object and null are not compared with one another"
	inexact         = "numbers past 2^53 are not told apart: write them as text"
	tooMuch         = "there is too much in the key and the value to compare them"
)

func judge(held bool) judgement { return judgement{held: held} }

func unsure(why string) judgement { return judgement{unsure: why} }

type pair struct {
	key, value any
	// keyIsPattern allows wildcards in the key. Only a key that the policy
	// itself spells out may have them: a `*` that arrives in a label or an
	// attestation would else be a member of every set.
	keyIsPattern bool
	// spelled says the same of the value.
	spelled spelling
	// absence says that the operator holds for what is not in the value.
	absence bool
	// work is what may still be compared.
	work *work
}

const (
	// maxWork bounds what one condition compares, in pairs of short texts: who writes the
	// object may write both sides. It takes tenths of a second.
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

// equal compares durations and quantities by what they are worth, lists and
// objects by their content, and other strings with value as a pattern of
// wildcards.
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
	if isText && isPattern {
		return p.match(pattern, text, p.spelled.own)
	}
	return reflect.DeepEqual(p.key, p.value), ""
}

// match matches a pattern, of whose wildcards own are the policy's. With others
// in it a match that is not to the letter may be none: it is in doubt. What does
// not match the whole pattern does not match in any other reading either.
func (p pair) match(pattern, text string, own int) (bool, string) {
	switch {
	case pattern == text:
		return true, ""
	case !p.work.spend(pattern, text):
		return false, tooMuch
	case !wildcard.Match(pattern, text):
		return false, ""
	case wildcards(pattern) > own:
		return false, foreignWildcard
	}
	return true, ""
}

// equals does not hold for a key of another kind. That it is not equal is not
// certain either, where a "true" may stand for true: whoever denies what is equal
// asks for what is unsure.
func (p pair) equals() judgement {
	same, doubt := p.equal()
	switch {
	case doubt != "":
		return judgement{unsure: doubt, either: true}
	case p.unlike():
		return unsure(unlikeKinds)
	}
	return judge(same)
}

// notEqual does not hold for a null key, nor for one of another kind than the
// value: nothing is known that could differ.
func notEqual(p pair) judgement {
	same, doubt := p.equal()
	switch {
	case p.key == nil && p.value != nil:
		return unsure("the key is null")
	case p.unlike(), p.key != nil && p.value == nil && !p.spelled.plain:
		return judgement{unsure: unlikeKinds, either: true}
	case doubt != "":
		return judgement{unsure: doubt, either: true}
	}
	return judge(!same)
}

// unlike reports whether key and value are of different kinds and have no order
// either, as numbers and quantities have; null is of any kind.
func (p pair) unlike() bool {
	_, ordered := order(p.key, p.value)
	return p.key != nil && p.value != nil && !ordered && reflect.TypeOf(p.key) != reflect.TypeOf(p.value)
}
