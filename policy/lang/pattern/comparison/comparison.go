// Package comparison compares a value with a scalar of a pattern.
//
// The scalars are those of Kyverno's overlay patterns (1.19, "Validate Rules"): a number, a
// boolean or null matches its own value; a string has operators, ranges, wildcards, `|` and `&`.
// Both sides of an operator are compared as durations if they can be, else as quantities of
// Kubernetes, else as text. Null counts as zero in a comparison with a duration or a quantity,
// and has no text.
//
// The value of a variable in a pattern is plain text (Literal): its operators, ranges and
// wildcards are characters. If the other reading gives a different result, the comparison does
// not hold and the error is ErrIndeterminate, as for an order of values that have none.
//
// Numbers become text in decimal, where Kyverno writes 1.5 as 1.5E+00. A text with the form of a
// quantity that is too large to be read is an error, so that neither `!5` holds for it nor a
// condition fails.
package comparison

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// ErrIndeterminate is wrapped by errors about a comparison that does not hold, and would in
// another reading of the value or of the pattern.
var ErrIndeterminate = errors.New("the comparison is indeterminate")

// Comparison is a compiled value of a pattern. It is immutable and safe for
// concurrent use.
type Comparison struct {
	source any
	scalar scalar
	star   bool
}

// scalar compares one value; an error means that the comparison is not possible.
type scalar interface {
	holds(b *Budget, value any) (bool, error)
}

// Compile reads nil, a bool, a float64 or a string, as a policy writes it. Errors are about
// other types, about text that is not UTF-8 (its bytes would count as those of a Literal), about
// an order over text that has none, and about too many comparisons in one string,
// jmespath.ErrTooLarge.
func Compile(pattern any) (*Comparison, error) {
	s, isText := pattern.(string)
	if isText && !utf8.ValidString(s) {
		return nil, fmt.Errorf("%q is not UTF-8", s)
	}
	c, err := CompileFilled(pattern)
	if isText && err == nil {
		err = c.scalar.(*text).ordered(s)
	}
	return c, err
}

// CompileFilled is Compile for a string in which parts are Literal.
func CompileFilled(pattern any) (*Comparison, error) {
	c := &Comparison{source: pattern}
	switch p := pattern.(type) {
	case nil:
		c.scalar = null{}
	case bool:
		c.scalar = boolean(p)
	case float64:
		c.scalar = number(p)
	case string:
		t, err := newText(p)
		if err != nil {
			return nil, err
		}
		c.scalar, c.source, c.star = t, t.whole, p == "*"
	default:
		return nil, fmt.Errorf("a %T is no pattern of one value", pattern)
	}
	return c, nil
}

// Holds compares one value, JSON as encoding/json decodes it; lists and objects
// hold nothing. An error is ErrIndeterminate or jmespath.ErrTooLarge.
func (c *Comparison) Holds(b *Budget, value any) (bool, error) {
	if err := b.Spend(1); err != nil {
		return false, err
	}
	return c.scalar.holds(b, value)
}

// Source is the uncompiled pattern.
func (c *Comparison) Source() any { return c.source }

// Star reports whether the pattern is `*`.
func (c *Comparison) Star() bool { return c.star }

// Budget is the limit for a number of comparisons together. The zero value is a full one.
type Budget struct{ spent int }

// Spend subtracts work, in comparisons of short values, from a budget.
func (b *Budget) Spend(work int) error {
	b.spent += work
	if b.spent > maxWork {
		return fmt.Errorf("the work of a match %w of %d comparisons", jmespath.ErrTooLarge, maxWork)
	}
	return nil
}

type boolean bool

// holds is indeterminate for a text that reads as the boolean.
func (b boolean) holds(_ *Budget, value any) (bool, error) {
	if s, isText := value.(string); isText && strings.EqualFold(strings.TrimSpace(s), strconv.FormatBool(bool(b))) {
		return false, fmt.Errorf("%w: the text %q and the boolean", ErrIndeterminate, s)
	}
	return value == bool(b), nil
}

// null is held by null, by a field that is not there, and by zero values.
type null struct{}

func (null) holds(_ *Budget, value any) (bool, error) {
	switch value {
	case nil, "", 0.0, false:
		return true, nil
	}
	return false, nil
}

// number is held by the number, also if it is written as a string.
type number float64

func (n number) holds(_ *Budget, value any) (bool, error) {
	switch v := value.(type) {
	case float64:
		if v == float64(n) && integer.Rounded(v) {
			return false, rounded(v)
		}
		return v == float64(n), nil
	case string:
		return n.written(v), nil
	}
	return false, nil
}

func (n number) written(s string) bool {
	if f := float64(n); f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		v, err := strconv.ParseInt(s, 10, 64)
		return err == nil && v == int64(f)
	}
	v, err := strconv.ParseFloat(s, 64)
	return err == nil && v == float64(n)
}

// plain writes a number as a policy would, in decimal.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
