package function

import (
	"errors"
	"fmt"
)

// The limits of values and texts.
const (
	// MaxText bounds each string that a function builds or parses.
	MaxText = 2 << 20
	// MaxPattern bounds regular expressions and version ranges, because their compiled form is
	// larger than their text.
	MaxPattern = 8 << 10
	// maxQuantity bounds the text of a quantity and maxExponent its exponent:
	// 1e999999999 would be written out as a big integer.
	maxQuantity = 64
	maxExponent = 24
	// ValueCost is the cost of a value, beside the bytes of its strings.
	ValueCost = 16
)

// ErrTooLarge is wrapped by errors about a bound of this package.
var ErrTooLarge = errors.New("exceeds the bound")

// TooLarge returns an error about a bound.
func TooLarge(what string, size, limit int) error {
	return fmt.Errorf("%s of %d %w of %d", what, size, ErrTooLarge, limit)
}

// Spend subtracts the size of a value from a budget, and stops when it is spent.
func Spend(value any, budget *int) {
	*budget -= ValueCost
	if *budget < 0 {
		return
	}
	switch v := value.(type) {
	case string:
		*budget -= len(v)
	case []any:
		for _, item := range v {
			Spend(item, budget)
			if *budget < 0 {
				return
			}
		}
	case map[string]any:
		for key, item := range v {
			*budget -= len(key)
			Spend(item, budget)
			if *budget < 0 {
				return
			}
		}
	}
}
