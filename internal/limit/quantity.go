package limit

import (
	"strconv"
	"strings"
)

// The bounds of a quantity of Kubernetes: its number in bytes, and its exponent. Kubernetes writes an exponent out
// as digits where it parses, compares or adds: with eight digits of it, for minutes.
const (
	MaxQuantityDigits   = 1 << 10
	MaxQuantityExponent = 1000
)

// Quantity refuses a text that is a quantity beyond the bounds, as an *ExceededError. One that is no quantity, such
// as a hash that ends in e472425, is within them: Kubernetes finds that out by its characters.
func Quantity(text string) error {
	unit := strings.TrimLeft(text, "+-.0123456789")
	isExponent := len(unit) > 1 && (unit[0] == 'e' || unit[0] == 'E') && strings.Trim(unit[1:], "+-0123456789") == ""
	switch {
	case !isExponent && len(unit) > 2: // no unit is longer
		return nil
	case len(text)-len(unit) > MaxQuantityDigits:
		return &ExceededError{What: "the digits of a quantity", Most: MaxQuantityDigits}
	case isExponent:
		// One that is no number is for the parser to refuse.
		n, err := strconv.ParseInt(unit[1:], 10, 64)
		if err == nil && (n > MaxQuantityExponent || n < -MaxQuantityExponent) {
			return &ExceededError{What: "the exponent of a quantity", Most: MaxQuantityExponent}
		}
	}
	return nil
}
