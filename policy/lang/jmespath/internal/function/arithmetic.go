package function

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// operand is a number, a Kubernetes quantity or a duration. "5m" is read as a
// quantity (five thousandths), as Kyverno does.
type operand struct {
	unit     unit
	number   float64
	quantity resource.Quantity
	duration time.Duration
}

type unit byte

const (
	aScalar unit = iota
	aQuantity
	aDuration
)

func (u unit) String() string { return [...]string{"a number", "a quantity", "a duration"}[u] }

var (
	errZero  = errors.New("division by zero")
	errWhole = errors.New("want whole numbers")
)

func parseOperand(value any) (operand, error) {
	switch v := value.(type) {
	case float64:
		return operand{number: v}, nil
	case string:
		if q, err := ParseQuantity(v); err == nil {
			return operand{unit: aQuantity, quantity: q}, nil
		}
		if d, err := time.ParseDuration(v); err == nil {
			return operand{unit: aDuration, duration: d}, nil
		}
		return operand{}, fmt.Errorf("%q is no number, quantity or duration", Shorten(v))
	}
	return operand{}, fmt.Errorf("%s is no number, quantity or duration", KindOf(value))
}

// ParseQuantity is resource.ParseQuantity with a bound on length and exponent, because it writes
// out the digits of the exponent. It refuses a number without a digit, such as "-" or "Ki", which
// Kubernetes parses as zero.
func ParseQuantity(text string) (resource.Quantity, error) {
	// A hash such as "c81d…e472425" is no number with an exponent past the bound.
	suffix := strings.TrimLeft(text, "+-.0123456789")
	number := strings.TrimSuffix(text, suffix)
	if !isSuffix(suffix) || strings.LastIndexAny(number, "+-") > 0 || strings.Count(number, ".") > 1 {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	if len(text) > maxQuantity {
		return resource.Quantity{}, TooLarge("a quantity", len(text), maxQuantity)
	}
	if len(suffix) > 1 {
		if exponent, err := strconv.Atoi(suffix[1:]); err == nil && (exponent > maxExponent || exponent < -maxExponent) {
			return resource.Quantity{}, TooLarge("an exponent", exponent, maxExponent)
		}
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, err
	}
	// A digit of an exponent is none of the number: "E5".
	if strings.Trim(number, "+-.") == "" {
		return resource.Quantity{}, fmt.Errorf("the quantity %q has no digit", text)
	}
	return quantity, nil
}

// isSuffix reports whether a text may follow the digits of a quantity: a unit, or an exponent.
func isSuffix(text string) bool {
	exponent := text != "" && strings.ContainsRune("eE", rune(text[0])) && strings.Trim(text[1:], "+-0123456789") == ""
	return len(text) <= 2 || exponent
}

// NumberIn returns the number that a text writes; null for none, as for "NaN" and "Inf".
func NumberIn(text string) any {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || !IsJSON(number) {
		return nil
	}
	return number
}

// IsJSON reports whether a value is no floating-point number that JSON does not have.
func IsJSON(value any) bool {
	number, ok := value.(float64)
	return !ok || !math.IsNaN(number) && !math.IsInf(number, 0)
}

// toNumber returns null for everything that is no number.
func toNumber(a Arguments) (any, error) {
	switch v := a[0].(type) {
	case float64:
		return v, nil
	case string:
		return NumberIn(v), nil
	}
	return nil, nil
}

func parsePair(a Arguments) (x, y operand, err error) {
	x, err = parseOperand(a[0])
	if err != nil {
		return x, y, fmt.Errorf("argument 1: %w", err)
	}
	y, err = parseOperand(a[1])
	if err != nil {
		return x, y, fmt.Errorf("argument 2: %w", err)
	}
	return x, y, nil
}

func mismatch(x, y operand) error {
	return fmt.Errorf("%s and %s do not go together", x.unit, y.unit)
}

// value returns an operand as JSON.
func (o operand) value() any {
	switch o.unit {
	case aQuantity:
		return o.quantity.String()
	case aDuration:
		return o.duration.String()
	}
	return o.number
}

func decimal(number float64) (*inf.Dec, error) {
	if math.IsNaN(number) || math.IsInf(number, 0) || math.Abs(number) > 1e18 {
		return nil, fmt.Errorf("the number %g is out of range", number)
	}
	dec, ok := new(inf.Dec).SetString(strconv.FormatFloat(number, 'f', -1, 64))
	if !ok {
		return nil, fmt.Errorf("the number %g is out of range", number)
	}
	return dec, nil
}

func nanoseconds(number float64) (time.Duration, error) {
	if math.IsNaN(number) || math.Abs(number) >= math.MaxInt64 {
		return 0, errors.New("the duration is out of range")
	}
	return time.Duration(number), nil
}

func add(a Arguments) (any, error) {
	x, y, err := parsePair(a)
	if err != nil {
		return nil, err
	}
	x, err = plus(x, y, 1)
	if err != nil {
		return nil, err
	}
	return x.value(), nil
}

func subtract(a Arguments) (any, error) {
	x, y, err := parsePair(a)
	if err != nil {
		return nil, err
	}
	x, err = plus(x, y, -1)
	if err != nil {
		return nil, err
	}
	return x.value(), nil
}

// plus returns x + sign*y, which have the same unit.
func plus(x, y operand, sign float64) (operand, error) {
	var err error
	switch {
	case x.unit != y.unit:
		return x, mismatch(x, y)
	case x.unit == aScalar:
		x.number += sign * y.number
	case x.unit == aDuration:
		x.duration, err = nanoseconds(float64(x.duration) + sign*float64(y.duration))
	case sign > 0:
		x.quantity.Add(y.quantity)
	default:
		x.quantity.Sub(y.quantity)
	}
	return x, err
}

// sum refuses an empty list, as Kyverno does: an empty sum would satisfy every limit.
func sum(a Arguments) (any, error) {
	list := a.List(0)
	if len(list) == 0 {
		return nil, errors.New("want at least one element")
	}
	var total operand
	for i, item := range list {
		next, err := parseOperand(item)
		if err == nil && i == 0 {
			total = next
			continue
		}
		if err == nil {
			total, err = plus(total, next, 1)
		}
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return total.value(), nil
}

func multiply(a Arguments) (any, error) {
	x, y, err := parsePair(a)
	if err != nil {
		return nil, err
	}
	if x.unit == aScalar {
		x, y = y, x
	}
	if y.unit != aScalar {
		return nil, mismatch(x, y)
	}
	switch x.unit {
	case aQuantity:
		factor, err := decimal(y.number)
		if err != nil {
			return nil, err
		}
		product := new(inf.Dec).Mul(x.quantity.AsDec(), factor)
		return resource.NewDecimalQuantity(*product, x.quantity.Format).String(), nil
	case aDuration:
		d, err := nanoseconds(float64(x.duration) * y.number)
		return d.String(), err
	}
	return x.number * y.number, nil
}

func divide(a Arguments) (any, error) {
	x, y, err := parsePair(a)
	if err != nil {
		return nil, err
	}
	if y.isZero() {
		return nil, errZero
	}
	switch {
	case x.unit == aScalar && y.unit == aScalar:
		return x.number / y.number, nil
	case x.unit == aDuration && y.unit == aDuration:
		return float64(x.duration) / float64(y.duration), nil
	case x.unit == aDuration && y.unit == aScalar:
		d, err := nanoseconds(float64(x.duration) / y.number)
		return d.String(), err
	case x.unit == aQuantity && y.unit != aDuration:
		return divideQuantity(x, y)
	}
	return nil, mismatch(x, y)
}

// divideQuantity returns the ratio of two quantities as a number. A quantity divided by a number
// is rounded down to the digits that the two are written with, as Kyverno does.
func divideQuantity(x, y operand) (any, error) {
	if y.unit == aQuantity {
		return x.quantity.AsApproximateFloat64() / y.quantity.AsApproximateFloat64(), nil
	}
	divisor, err := decimal(y.number)
	if err != nil {
		return nil, err
	}
	dividend := x.quantity.AsDec()
	quotient := new(inf.Dec).QuoRound(dividend, divisor, max(dividend.Scale(), divisor.Scale()), inf.RoundDown)
	return resource.NewDecimalQuantity(*quotient, x.quantity.Format).String(), nil
}

func (o operand) isZero() bool {
	switch o.unit {
	case aQuantity:
		return o.quantity.IsZero()
	case aDuration:
		return o.duration == 0
	}
	return o.number == 0
}

func modulo(a Arguments) (any, error) {
	x, y, err := parsePair(a)
	if err != nil {
		return nil, err
	}
	switch {
	case x.unit != y.unit:
		return nil, mismatch(x, y)
	case y.isZero():
		return nil, errZero
	}
	switch x.unit {
	case aDuration:
		return (x.duration % y.duration).String(), nil
	case aQuantity:
		return moduloQuantity(x.quantity, y.quantity)
	}
	if x.number != math.Trunc(x.number) || y.number != math.Trunc(y.number) {
		return nil, errWhole
	}
	return math.Mod(x.number, y.number), nil
}

// moduloQuantity takes whole quantities only.
func moduloQuantity(x, y resource.Quantity) (any, error) {
	i, isWhole := x.AsInt64()
	n, areWhole := y.AsInt64()
	if !isWhole || !areWhole {
		return nil, errWhole
	}
	return resource.NewQuantity(i%n, x.Format).String(), nil
}

func round(a Arguments) (any, error) {
	places := a.Number(1)
	if places < 0 || places != math.Trunc(places) {
		return nil, fmt.Errorf("argument 2: want a whole number of places, zero or more, got %g", places)
	}
	shift := math.Pow(10, math.Min(places, 300))
	rounded := math.Round(a.Number(0)*shift) / shift
	if math.IsInf(rounded, 0) {
		return a.Number(0), nil // more places than the number has
	}
	return rounded, nil
}
