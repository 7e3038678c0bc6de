// Package integer says which integers of decoded JSON are exact. A decoder that returns float64
// rounds an integer of 2^53 or more to the nearest one it has (RFC 8259, section 6); Kubernetes
// keeps every int64, and decodes a float64 itself only beyond 2^63.
package integer

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

const (
	// exactBelow is the first integer that shares its float64 with another one.
	exactBelow = 1 << 53
	// most is the size beyond which Kubernetes decodes a float64 too. The largest int64 is
	// rounded to it.
	most = 1 << 63
)

// Rounded reports whether v may have been another integer before it was decoded.
func Rounded(v float64) bool {
	size := math.Abs(v)
	return v == math.Trunc(v) && size >= exactBelow && size <= most
}

// Error is the error for a rounded integer.
func Error(v float64) error {
	return fmt.Errorf("an integer near %.0f is too large to be read exactly", v)
}

// Exact returns an error if a part of a decoded value is rounded.
func Exact(value any) error {
	switch v := value.(type) {
	case float64:
		if Rounded(v) {
			return Error(v)
		}
	case []any:
		for _, item := range v {
			if err := Exact(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := Exact(v[key]); err != nil {
				return err
			}
		}
	}
	return nil
}
