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

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

func (t *text) holds(b *Budget, value any) (bool, error) {
	if value == t.whole {
		return true, nil
	}
	o := operand{value: value}
	ok, err := o.compareAny(b, t.any)
	if t.other == nil || err != nil && !errors.Is(err, ErrIndeterminate) {
		return ok, err
	}
	otherwise, otherErr := o.compareAny(b, t.other)
	switch {
	case otherErr != nil && !errors.Is(otherErr, ErrIndeterminate):
		return false, otherErr
	case ok == otherwise:
		return ok, cmp.Or(err, otherErr)
	}
	return false, fmt.Errorf("%w: it depends on an operator or a wildcard that a variable brings, which is plain text", ErrIndeterminate)
}

// compareAny is `|` in three-valued logic: an error that is ErrIndeterminate counts if no
// alternative holds.
func (o *operand) compareAny(b *Budget, alternatives [][]comparison) (bool, error) {
	var doubt error
	for _, all := range alternatives {
		ok, err := o.compareAll(b, all)
		if ok || err != nil && !errors.Is(err, ErrIndeterminate) {
			return ok, err
		}
		doubt = cmp.Or(doubt, err)
	}
	return false, doubt
}

// operand is the value under comparison, parsed at most once as each possible type.
type operand struct {
	value    any
	text     string
	duration time.Duration
	quantity resource.Quantity

	isText, isDuration, isQuantity answer
}

// answer is a cached result that may not be computed yet.
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

// compareAll is `&`: an error that is ErrIndeterminate counts if no part is false.
func (o *operand) compareAll(b *Budget, all []comparison) (bool, error) {
	var doubt error
	for i := range all {
		ok, err := o.compare(b, &all[i])
		if !ok && all[i].or != nil && (err == nil || errors.Is(err, ErrIndeterminate)) {
			before := err
			if ok, err = o.compare(b, all[i].or); !ok {
				err = cmp.Or(err, before)
			}
		}
		if !ok && !errors.Is(err, ErrIndeterminate) {
			return false, err
		}
		doubt = cmp.Or(doubt, err)
	}
	return doubt == nil, doubt
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
			return o.decide(c)
		}
	}
	switch {
	case c.operator != equal && c.operator != notEqual:
		return false, o.noOrder()
	case !o.readText():
		return false, nil
	case c.operator == notEqual && c.isQuantity && c.quantity.IsZero() && isUnit(o.text):
		return false, fmt.Errorf("%w: a unit without a number is zero in Kubernetes", ErrIndeterminate)
	}
	if err := b.Spend(cost(c.operand, o.text)); err != nil {
		return false, err
	}
	matches := wildcard.Match(c.operand, c.hide(o.text))
	if v, ok := o.value.(float64); ok && integer.Rounded(v) && c.readsDigits(v, matches) {
		return false, rounded(v)
	}
	return matches == (c.operator == equal), nil
}

// readsDigits reports whether a rounded integer may match otherwise: an operand without digits reads their number alone.
func (c *comparison) readsDigits(v float64, matches bool) bool {
	return strings.ContainsAny(c.operand, "0123456789") ||
		wildcard.Match(c.operand, plain(math.Nextafter(v, math.Inf(-1)))) != matches || wildcard.Match(c.operand, plain(math.Nextafter(v, math.Inf(1)))) != matches
}

// decide compares quantities. A rounded integer has the order that its neighbours have, too.
func (o *operand) decide(c *comparison) (bool, error) {
	order := o.quantity.Cmp(c.quantity)
	v, ok := o.value.(float64)
	if !ok || !integer.Rounded(v) {
		return c.operator.decide(order), nil
	}
	for _, end := range []float64{math.Inf(-1), math.Inf(1)} {
		neighbour := operand{value: math.Nextafter(v, end)}
		if ok, err := neighbour.readQuantity(); !ok || neighbour.quantity.Cmp(c.quantity) != order {
			return false, cmp.Or(err, rounded(v))
		}
	}
	return c.operator.decide(order), nil
}

func rounded(v float64) error { return fmt.Errorf("%w: %w", ErrIndeterminate, integer.Error(v)) }

// noOrder is the error for a value that has no order with an operand. Null counts as less than a
// text that is no amount, as in Kyverno.
func (o *operand) noOrder() error {
	if o.value == nil {
		return nil
	}
	return fmt.Errorf("%w: the value and the operand have no order", ErrIndeterminate)
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

// readDuration reads null, and a missing value, as zero.
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

// readQuantity reads null as zero, too. An error means a quantity too large to be read; no real
// quantity has that size.
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

// isUnit reports whether Kubernetes parses a text that is no amount here, such as Ki, as zero. An exponent past the bound
// (e99) is not parsed.
func isUnit(text string) bool {
	_, err := jmespath.ParseQuantity(text)
	if err != nil && !errors.Is(err, jmespath.ErrTooLarge) {
		_, err = resource.ParseQuantity(text)
		return err == nil
	}
	return err != nil
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

// cost bounds the work of a wildcard match.
func cost(pattern, text string) int {
	if strings.Contains(pattern, "?") {
		return 1 + len(pattern)*len(text)/workBytes
	}
	return 1 + (len(pattern)+len(text))/workBytes
}
