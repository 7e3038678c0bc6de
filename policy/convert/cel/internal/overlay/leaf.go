package overlay

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// leaf writes a pattern that is neither object nor list.
func leaf(pattern any, at celtext.Path, place string) (string, error) {
	switch p := pattern.(type) {
	case nil:
		return at.Or("null") + " in [dyn(null), dyn(''), dyn(0), dyn(false)]", nil
	case bool:
		return at.Or(strconv.FormatBool(!p)) + " == " + strconv.FormatBool(p), nil
	case float64:
		if p != math.Trunc(p) || math.Abs(p) >= 1<<53 {
			return "", &source.Unsupported{Path: place, Found: "a number that is no integer"}
		}
		n := strconv.FormatInt(int64(p), 10)
		return "string(" + at.Or("''") + ") == '" + n + "'", nil
	case string:
		return text(p, at, place)
	}
	return "", &source.Unsupported{Path: place, Found: "a value of another type"}
}

// text writes a string: comparisons joined by & and |.
func text(s string, at celtext.Path, place string) (string, error) {
	if hasVariable(s) {
		return "", &source.Unsupported{Path: place, Found: "a variable"}
	}
	if s == "*" {
		return at.Or("null") + " != null", nil
	}
	var alternatives []string
	var same []string // texts of which one must be equal
	for alternative := range strings.SplitSeq(s, "|") {
		var every []string
		parts := strings.Split(strings.Trim(alternative, " "), "&")
		for _, part := range parts {
			part = strings.TrimSpace(part)
			if len(parts) == 1 && isWord(part) {
				same = append(same, celtext.String(part))
				continue
			}
			one, err := comparison(part, at, place)
			if err != nil {
				return "", err
			}
			every = append(every, one)
		}
		if len(every) > 0 {
			alternatives = append(alternatives, all(every))
		}
	}
	value := "string(" + at.Or("''") + ")"
	switch {
	case len(same) == 1:
		alternatives = append([]string{value + " == " + same[0]}, alternatives...)
	case len(same) > 1:
		alternatives = append([]string{value + " in [" + strings.Join(same, ", ") + "]"}, alternatives...)
	}
	return strings.Join(alternatives, " || "), nil
}

// isWord reports whether a part is a text without operators, wildcards and amounts.
func isWord(s string) bool {
	return s != "" && !strings.ContainsAny(s, "*?") && strings.IndexByte("<>!", s[0]) < 0 && !startsAmount(s)
}

// startsAmount reports whether a text may be an amount or a range.
func startsAmount(s string) bool { return s != "" && strings.IndexByte("+-.0123456789", s[0]) >= 0 }

// counts reports whether a part of a text may be an order or an amount, for which a missing value is zero.
func counts(text string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '|' || r == '&' }) {
		part = strings.TrimSpace(part)
		if part != "" && strings.IndexByte("<>", part[0]) >= 0 || startsAmount(strings.TrimSpace(strings.TrimPrefix(part, "!"))) {
			return true
		}
	}
	return false
}

// comparison writes one operator with its operand.
func comparison(s string, at celtext.Path, place string) (string, error) {
	for _, o := range []string{">=", "<=", ">", "<"} {
		if operand, ok := strings.CutPrefix(s, o); ok {
			return ordered(o, strings.TrimSpace(operand), at, place)
		}
	}
	operand, not := strings.CutPrefix(s, "!")
	operand = strings.TrimSpace(operand)
	if ends := between.FindStringSubmatch(operand); ends != nil && !not {
		return ranged(ends[1], ends[3], ends[2] != "", at, place)
	}
	if isAmount(operand) {
		if not {
			return "", &source.Unsupported{Path: place, Found: "all but the amount " + strconv.Quote(operand)}
		}
		return ordered("==", operand, at, place)
	}
	if operand == "" || strings.IndexByte("!<>", operand[0]) >= 0 {
		return "", &source.Unsupported{Path: place, Found: "an operator without a text, or before another"}
	}
	value := "string(" + at.Or("''") + ")"
	if not {
		// A missing value has no text, so that neither the text nor its negation holds.
		there := at.Sure()
		made := celtext.NotMatches(operand, "string("+there.Direct+")")
		if at.Optional != "" {
			return at.Present + " && " + made, nil
		}
		return made, nil
	}
	if at.Optional != "" && strings.Trim(operand, "*") == "" {
		return at.Present + " && " + celtext.Matches(operand, "string("+at.Direct+")"), nil
	}
	return celtext.Matches(operand, value), nil
}

// between is a range, or with ! the values outside of one.
var between = regexp.MustCompile(`^([-+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)(!?)-([-+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)$`)

// ranged writes a range with both ends.
func ranged(low, high string, outside bool, at celtext.Path, place string) (string, error) {
	from, to, operator := ">=", "<=", " && "
	if outside {
		from, to, operator = "<", ">", " || "
	}
	first, err := ordered(from, low, at, place)
	if err != nil {
		return "", err
	}
	second, err := ordered(to, high, at, place)
	return first + operator + second, err
}

// isAmount reports whether a text is compared as a duration or a quantity where the value is one.
func isAmount(s string) bool {
	if !startsAmount(s) {
		return false
	}
	_, err := time.ParseDuration(s)
	_, other := jmespath.ParseQuantity(s)
	return err == nil || other == nil
}

// ordered writes an order of quantities. Null counts as zero.
func ordered(operator, operand string, at celtext.Path, place string) (string, error) {
	if _, err := time.ParseDuration(operand); err == nil && operand != "0" {
		return "", &source.Unsupported{Path: place, Found: "the duration " + strconv.Quote(operand)}
	}
	if _, err := jmespath.ParseQuantity(operand); err != nil {
		return "", &source.Unsupported{Path: place, Found: "the amount " + strconv.Quote(operand)}
	}
	return "quantity(string(" + at.Or("0") + ")).compareTo(quantity(" + celtext.String(operand) + ")) " + operator + " 0", nil
}
