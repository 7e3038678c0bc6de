package kyverno

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// What is written and empty says something to who reads the policy, and nothing
// to what enforces it.

// writtenEmpty reports whether a field of an object is there, with null or
// nothing in it.
func writtenEmpty(object any, field string) bool {
	members, _ := object.(map[string]any)
	value, ok := members[field]
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

// emptyLists refuses attestors and conditions of an entry that are written and
// empty.
func emptyLists(raw any, path string) error {
	const nobody = "is empty, and so nobody could sign: name who must, or leave the field out"
	var errs []error
	if writtenEmpty(raw, "attestors") {
		errs = append(errs, fail(path+".attestors", nobody))
	}
	entry, _ := raw.(map[string]any)
	attestations, _ := entry["attestations"].([]any)
	for i, one := range attestations {
		members, _ := one.(map[string]any)
		if conditions, ok := members["conditions"]; ok {
			errs = append(errs, emptyConditions(conditions, fmt.Sprintf("%s.attestations[%d].conditions", path, i)))
		}
	}
	validate, _ := entry["validate"].(map[string]any)
	deny, _ := validate["deny"].(map[string]any)
	if conditions := deny["conditions"]; conditions != nil {
		errs = append(errs, emptyConditions(conditions, path+".validate.deny.conditions"))
	}
	return errors.Join(errs...)
}

// neverHolds refuses preconditions of which one block is any of none: the rule
// would apply to nothing.
func neverHolds(preconditions any, path string) error {
	blocks, ok := preconditions.([]any)
	if !ok {
		blocks = []any{preconditions}
	}
	for _, block := range blocks {
		members, _ := block.(map[string]any)
		if list, ok := members["any"].([]any); ok && len(list) == 0 {
			return fail(path+".any", "is empty, and so never holds, and the rule would apply to nothing: write a condition, or leave the field out")
		}
	}
	return nil
}

// emptyConditions refuses conditions that ask nothing, or a part of them that
// does.
func emptyConditions(conditions any, path string) error {
	const nothing = "is empty, and so would ask nothing: write a condition, or leave the field out"
	if isEmpty(conditions) {
		return fail(path, nothing)
	}
	switch v := conditions.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if (name == "any" || name == "all") && isEmpty(v[name]) {
				return fail(path+"."+name, nothing)
			}
		}
	case []any:
		for i, item := range v {
			if err := emptyConditions(item, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}
