package comparison

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// text is a string pattern: comparisons joined by `&`, and these by `|`.
type text struct {
	whole string
	any   [][]comparison
	// other is the parsed string with the values of variables as patterns; nil if that is the
	// same.
	other [][]comparison
}

// operator is how a value compares with an operand.
type operator byte

const (
	equal operator = iota
	notEqual
	more
	less
	atLeast
	atMost
)

// comparison is one operator with its operand, read as everything it can be.
type comparison struct {
	operator   operator
	operand    string // in which wildcards that are characters are hidden
	hidden     bool   // there are some
	duration   time.Duration
	quantity   resource.Quantity
	isDuration bool
	isQuantity bool
	or         *comparison // of a range to stay outside of
	ranged     bool        // an end of a range
}

func newText(s string) (*text, error) {
	t := &text{whole: reveal(s)}
	var err error
	t.any, err = alternatives(s)
	if err != nil || t.whole == s {
		return t, err
	}
	other, err := alternatives(t.whole)
	if !slices.EqualFunc(t.any, other, func(a, b []comparison) bool { return slices.EqualFunc(a, b, comparison.same) }) {
		t.other = other
	}
	return t, err
}

// ordered refuses an order over an operand that is no amount. A range with such ends is accepted:
// a tag may have the form of one.
func (t *text) ordered(s string) error {
	for _, all := range t.any {
		for _, c := range all {
			if !c.ranged && c.operator != equal && c.operator != notEqual && !c.isDuration && !c.isQuantity {
				return fmt.Errorf("%q: %q has no order: write a number, a quantity or a duration", s, c.operand)
			}
		}
	}
	return nil
}

// same reports whether two comparisons compare alike.
func (c comparison) same(other comparison) bool {
	return c.operator == other.operator && c.operand == other.operand && (c.or == nil) == (other.or == nil) && (c.or == nil || c.or.same(*other.or))
}

func alternatives(s string) ([][]comparison, error) {
	var list [][]comparison
	count := 0
	for alternative := range strings.SplitSeq(s, "|") {
		var all []comparison
		for part := range strings.SplitSeq(strings.Trim(alternative, " "), "&") {
			count++
			if count > maxParts {
				return nil, fmt.Errorf("the comparisons in one string %w of %d", jmespath.ErrTooLarge, maxParts)
			}
			all = append(all, parseComparisons(strings.Trim(part, " "))...)
		}
		list = append(list, all)
	}
	return list, nil
}

// parseComparisons reads an operator and its operand, or a range.
func parseComparisons(s string) []comparison {
	if len(s) < 2 {
		return []comparison{newComparison(equal, s)}
	}
	switch {
	case strings.HasPrefix(s, ">="):
		return []comparison{newComparison(atLeast, s[2:])}
	case strings.HasPrefix(s, "<="):
		return []comparison{newComparison(atMost, s[2:])}
	case s[0] == '>':
		return []comparison{newComparison(more, s[1:])}
	case s[0] == '<':
		return []comparison{newComparison(less, s[1:])}
	case s[0] == '!':
		return []comparison{newComparison(notEqual, s[1:])}
	}
	low, high, outside, ok := parseRange(s)
	switch {
	case !ok:
		return []comparison{newComparison(equal, s)}
	case outside:
		below, above := newComparison(less, low), newComparison(more, high)
		below.or, below.ranged = &above, true
		return []comparison{below}
	}
	from, to := newComparison(atLeast, low), newComparison(atMost, high)
	from.ranged, to.ranged = true, true
	return []comparison{from, to}
}

func newComparison(o operator, operand string) comparison {
	c := comparison{operator: o, operand: revealAll(strings.TrimSpace(operand), 2)}
	c.hidden = strings.IndexByte(c.operand, hiding[0]) >= 0 || strings.IndexByte(c.operand, hiding[1]) >= 0
	if !startsAmount(c.operand) {
		return c
	}
	if d, err := time.ParseDuration(c.operand); err == nil {
		c.duration, c.isDuration = d, true
	}
	if q, err := jmespath.ParseQuantity(c.operand); err == nil {
		c.quantity, c.isQuantity = q, true
	}
	return c
}

// parseRange reads `1-10` and, to stay outside of, `1!-10`; both ends may have
// a sign and a unit.
func parseRange(s string) (low, high string, outside, ok bool) {
	end := amount(s)
	if end == 0 {
		return "", "", false, false
	}
	low, high, ok = s[:end], s[end:], true
	high, outside = strings.CutPrefix(high, "!-")
	if !outside {
		high, ok = strings.CutPrefix(high, "-")
	}
	return low, high, outside, ok && high != "" && amount(high) == len(high)
}

// startsAmount reports whether s may be a duration or a quantity: parsing any other text costs an
// error.
func startsAmount(s string) bool {
	return s != "" && strings.IndexByte("+-.0123456789", s[0]) >= 0
}

// amount returns how much of the start of s is a number with an optional sign,
// fraction and unit of letters.
func amount(s string) int {
	i := 0
	if s != "" && (s[0] == '-' || s[0] == '+' || s[0] == hiddenMinus) {
		i++
	}
	n := digits(s[i:])
	if n == 0 {
		return 0
	}
	i += n
	if i < len(s) && s[i] == '.' {
		n = digits(s[i+1:])
		if n == 0 {
			return 0
		}
		i += 1 + n
	}
	for i < len(s) && ('a' <= s[i]|0x20 && s[i]|0x20 <= 'z') {
		i++
	}
	return i
}

func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
