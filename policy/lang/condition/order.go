package condition

import (
	"cmp"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// ordered makes an operator of an order.
func ordered(name string, order func(key, value any) (int, bool)) operator {
	return func(p pair) judgement {
		o, ok := order(p.key, p.value)
		switch {
		case p.key == nil:
			return p.null("the key is null")
		case p.value == nil:
			return p.null("the value is null")
		case !ok:
			return indeterminate(noOrder)
		case doubtful(p.key, p.value):
			return indeterminate(inexact)
		}
		return judge(ordering(name, o))
	}
}

// ordering reports whether an operator holds for a key that is less than, equal to or greater than the value.
func ordering(name string, o int) bool {
	switch name {
	case "GreaterThan":
		return o > 0
	case "GreaterThanOrEquals":
		return o >= 0
	case "LessThan":
		return o < 0
	}
	return o <= 0
}

const noOrder = "key and value have no order"

// orderable refuses a key or a value that is written out and has no order with anything.
func (c condition) orderable(path string) error {
	want := "a number, a quantity, a duration or a version"
	switch strings.TrimPrefix(c.name, "Duration") {
	case "GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals":
	default:
		return nil
	}
	by := order
	if strings.HasPrefix(c.name, "Duration") {
		by, want = orderDurations, "a duration or a number of seconds"
	}
	for name, side := range map[string]*variable.Template{"key": c.key, "value": c.value} {
		if !side.Plain() {
			continue
		}
		value, err := side.Execute(nil)
		if err != nil {
			return err
		}
		if _, ok := by(value, value); !ok {
			return fail(path+"/"+name, "%s has no order, so that %s never holds: write %s", show(value), c.name, want)
		}
	}
	return nil
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
	return cmp.Compare(k, v), ok1 && ok2
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
		return cmp.Compare(k, v), !math.IsNaN(k) && !math.IsNaN(v)
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

// isUnitAlone reports whether a text that is no amount here is a unit alone, such as Ki, which is zero in Kubernetes, beside a zero.
func isUnitAlone(text, zero string) bool {
	if !strings.Contains(zero, "0") { // to parse another text costs an error
		return false
	}
	number, err1 := jmespath.ParseQuantity(zero)
	unit, err2 := quantity(text)
	large := errors.Is(err2, jmespath.ErrTooLarge) && strings.ContainsAny(text[:1], "eE") // an exponent alone
	return err1 == nil && number.IsZero() && (err2 == nil && unit.IsZero() || large)
}

func scalar(value any) bool {
	switch value.(type) {
	case string, float64:
		return true
	}
	return false
}

// maxExact is the end of the integers of which none is rounded to another one as JSON is decoded.
const maxExact = 1 << 53

func exact(value any) bool {
	number, _ := value.(float64)
	return math.Abs(number) < maxExact
}

// doubtful reports whether the order of two amounts hinges on how a number was rounded: its neighbours lie on either side of the other amount.
func doubtful(a, b any) bool {
	return straddles(a, b) || straddles(b, a)
}

func straddles(a, b any) bool {
	if exact(a) {
		return false
	}
	number, _ := a.(float64)
	below, _ := orderQuantities(math.Nextafter(number, math.Inf(-1)), b)
	above, _ := orderQuantities(math.Nextafter(number, math.Inf(1)), b)
	return below != above
}
