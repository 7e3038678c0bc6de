// Package jsonvalue compares, measures and describes JSON values. It holds the bounds of
// package patch.
package jsonvalue

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

const (
	// MaxDepth bounds the nesting of patches and of their results; the API server stops at
	// 10,000, real objects at about 20.
	MaxDepth = 200
	// MaxOperations bounds the operations of one patch, and those of one Diff; the
	// API server stops at 10,000.
	MaxOperations = 10_000
	// MaxAdded bounds the output of one patch, or of all patches of one rule, in bytes of text
	// plus Cost for each value; the API server accepts objects of 3 MiB.
	MaxAdded = 3 << 20
	// Cost is the cost of a value in addition to its text.
	Cost = 8
	// MaxText bounds a JSON patch that is written as text.
	MaxText = 3 << 20
)

// ErrTooLarge is wrapped by errors about a bound.
var ErrTooLarge = jmespath.ErrTooLarge

// KindOf names the kind of a value for a message.
func KindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "true or false"
	}
	return "a number"
}

// Budget is the remaining output of a patch, in bytes.
type Budget int

// Spend takes bytes from the budget.
func (b *Budget) Spend(bytes int) error {
	*b -= Budget(bytes)
	if *b < 0 {
		return fmt.Errorf("the patch's output %w of %d bytes", ErrTooLarge, MaxAdded)
	}
	return nil
}

// Charge takes a value that is written at a depth from the budget. A number that is not exact is an
// error, too.
func (b *Budget) Charge(value any, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("nesting %w of %d", ErrTooLarge, MaxDepth)
	}
	if err := b.Spend(Cost); err != nil {
		return err
	}
	switch v := value.(type) {
	case string:
		return b.Spend(len(v))
	case float64:
		return integer.Exact(value)
	case []any:
		for _, item := range v {
			if err := b.Charge(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range v {
			*b -= Budget(len(key))
			if err := b.Charge(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Equal reports whether two values of JSON are the same.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && equalObjects(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && equalLists(x, y)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	return a == b
}

func equalObjects(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	if SameObject(a, b) {
		return true
	}
	for key, x := range a {
		if y, ok := b[key]; !ok || !Equal(x, y) {
			return false
		}
	}
	return true
}

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	if SameList(a, b) {
		return true
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// SameObject reports whether two objects are the same map: a patch shares the parts that
// it does not change.
func SameObject(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// SameList reports the same of two lists.
func SameList(a, b []any) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Escape makes one token of a JSON pointer.
func Escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Show keeps a value readable in a message.
func Show(value any) string {
	const most = 200
	text := jmespath.Text(value)
	return limit.Text(text, most)
}
