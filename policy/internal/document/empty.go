package document

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// A field that is present and empty appears to be a setting, and has no
// effect.

// WrittenEmpty reports whether an object has a field with null or an empty value.
func WrittenEmpty(object any, name string) bool {
	members, _ := object.(map[string]any)
	value, ok := members[name]
	return ok && isEmpty(value)
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// NeverHolds refuses preconditions of which one block is any of none: the rule
// would apply to nothing.
func NeverHolds(preconditions any, path string) error {
	blocks, ok := preconditions.([]any)
	if !ok {
		blocks = []any{preconditions}
	}
	for _, block := range blocks {
		members, _ := block.(map[string]any)
		if list, ok := members["any"].([]any); ok && len(list) == 0 {
			return field.Fail(path+".any", "is empty, and so never holds, and the rule would apply to nothing: write a condition, or leave the field out")
		}
	}
	return nil
}

// EmptyConditions refuses conditions without a check, also in a part of them.
func EmptyConditions(conditions any, path string) error {
	const nothing = "is empty, and so would ask nothing: write a condition, or leave the field out"
	if isEmpty(conditions) {
		return field.Fail(path, nothing)
	}
	switch v := conditions.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if (name == "any" || name == "all") && isEmpty(v[name]) {
				return field.Fail(path+"."+name, nothing)
			}
		}
	case []any:
		for i, item := range v {
			if err := EmptyConditions(item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}
