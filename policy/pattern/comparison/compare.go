package comparison

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

func (t *text) holds(b *Budget, value any) (bool, error) {
	if value == t.whole {
		return true, nil
	}
	o := operand{value: value}
	for _, all := range t.any {
		ok, err := o.compareAll(b, all)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// operand is the value that comparisons look at, read at most once as each of
// what it can be.
type operand struct {
	value    any
	text     string
	duration time.Duration
	quantity resource.Quantity

	isText, isDuration, isQuantity answer
}

// answer is to a question that may not have been asked yet.
type answer byte

const (
	unasked answer = iota
	no
	yes
)

func answerOf(is bool) answer {
	if is {
		return yes
	}
	return no
}

func (o *operand) compareAll(b *Budget, all []comparison) (bool, error) {
	for i := range all {
		ok, err := o.compare(b, &all[i])
		if err == nil && !ok && all[i].or != nil {
			ok, err = o.compare(b, all[i].or)
		}
		if !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// compare tries durations, quantities and text, in this order.
func (o *operand) compare(b *Budget, c *comparison) (bool, error) {
	if c.isDuration && o.readDuration() {
		return c.operator.decide(cmp.Compare(o.duration, c.duration)), nil
	}
	if c.isQuantity {
		ok, err := o.readQuantity()
		if err != nil {
			return false, err
		}
		if ok {
			return c.operator.decide(o.quantity.Cmp(c.quantity)), nil
		}
	}
	if c.operator != equal && c.operator != notEqual || !o.readText() {
		return false, nil
	}
	if err := b.Spend(price(c.operand, o.text)); err != nil {
		return false, err
	}
	return wildcard.Match(c.operand, o.text) == (c.operator == equal), nil
}

func (o operator) decide(order int) bool {
	switch o {
	case equal:
		return order == 0
	case notEqual:
		return order != 0
	case more:
		return order > 0
	case less:
		return order < 0
	case atLeast:
		return order >= 0
	}
	return order <= 0
}

// readDuration reads null, and what is not there, as nothing: zero.
func (o *operand) readDuration() bool {
	if o.isDuration == unasked {
		is := o.value == nil || o.value == 0.0
		if s, ok := o.value.(string); ok && startsAmount(s) {
			d, err := time.ParseDuration(s)
			o.duration, is = d, err == nil
		}
		o.isDuration = answerOf(is)
	}
	return o.isDuration == yes
}

// readQuantity reads null as zero, too. An error is about what is a quantity
// that nobody writes, so large that it is not read.
func (o *operand) readQuantity() (bool, error) {
	if o.isQuantity != unasked {
		return o.isQuantity == yes, nil
	}
	is := true
	switch v := o.value.(type) {
	case nil:
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			o.quantity = *resource.NewQuantity(int64(v), resource.DecimalSI)
			break
		}
		// Six digits after the point, as Kyverno has it.
		q, err := jmespath.ParseQuantity(strconv.FormatFloat(v, 'f', 6, 64))
		if err != nil {
			return false, fmt.Errorf("the number %g: %w", v, err)
		}
		o.quantity = q
	case string:
		if !startsAmount(v) {
			is = false
			break
		}
		q, err := jmespath.ParseQuantity(v)
		if errors.Is(err, jmespath.ErrTooLarge) && strings.Trim(v, "0123456789.+-eEinumkKMGTP") == "" {
			return false, err
		}
		o.quantity, is = q, err == nil
	default:
		is = false
	}
	o.isQuantity = answerOf(is)
	return is, nil
}

func (o *operand) readText() bool {
	if o.isText == unasked {
		is := true
		switch v := o.value.(type) {
		case string:
			o.text = v
		case float64:
			o.text = plain(v)
		case bool:
			o.text = strconv.FormatBool(v)
		default:
			is = false
		}
		o.isText = answerOf(is)
	}
	return o.isText == yes
}

// price is what a wildcard may have to look at.
func price(pattern, text string) int {
	if strings.Contains(pattern, "?") {
		return 1 + len(pattern)*len(text)/workBytes
	}
	return 1 + (len(pattern)+len(text))/workBytes
}
