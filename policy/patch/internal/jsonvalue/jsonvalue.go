// Package jsonvalue answers what patches ask about values of JSON: are two equal, how large
// is one, what is it called in a message? It holds the bounds of package patch.
package jsonvalue

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/quaymaster/quaymaster/policy/jmespath"
)

const (
	// MaxDepth bounds objects and lists in one another, in patches and in what
	// they make; the API server stops at 10,000, honest objects at about 20.
	MaxDepth = 200
	// MaxOperations bounds the operations of one patch, and those of one Diff; the
	// API server stops at 10,000.
	MaxOperations = 10_000
	// MaxAdded bounds what one patch writes, or those of one rule together, in bytes of text plus Cost for each
	// value; the API server takes objects of 3 MiB.
	MaxAdded = 3 << 20
	// Cost is what a value costs besides its text.
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

// Allowance is what a patch may still write, in bytes.
type Allowance int

// Spend takes bytes from the allowance.
func (a *Allowance) Spend(bytes int) error {
	if *a -= Allowance(bytes); *a < 0 {
		return fmt.Errorf("what the patch writes %w of %d bytes", ErrTooLarge, MaxAdded)
	}
	return nil
}

// Charge takes a value that is written at a depth from the allowance.
func (a *Allowance) Charge(value any, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("nesting %w of %d", ErrTooLarge, MaxDepth)
	}
	if err := a.Spend(Cost); err != nil {
		return err
	}
	switch v := value.(type) {
	case string:
		return a.Spend(len(v))
	case []any:
		for _, item := range v {
			if err := a.Charge(item, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range v {
			*a -= Allowance(len(key))
			if err := a.Charge(item, depth+1); err != nil {
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

// SameObject reports whether two objects are one in memory: a patch shares what it
// does not change.
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
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
