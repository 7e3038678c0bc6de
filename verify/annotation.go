package verify

import (
	"maps"
	"slices"
)

// MissingAnnotation decides whether the signed annotations include all that are
// wanted, with exactly these values. It returns nil, or the first that is
// missing in alphabetical order, without its origin.
func MissingAnnotation(wanted, signed map[string]string) *Rejection {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		value, ok := signed[name]
		if ok && value == wanted[name] {
			continue
		}
		reject := &Rejection{Code: WrongAnnotation, Expected: name + "=" + wanted[name]}
		if ok {
			reject.Found = name + "=" + value
		}
		return reject
	}
	return nil
}
