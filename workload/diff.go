package workload

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Diff returns the operations that make the one decoded object of the other, as few
// as fields need, the same each time. A list whose elements changed in number is
// grown or cut at its end where the rest is alike, and replaced otherwise.
func Diff(before, after map[string]any) []Operation {
	return diffObjects(nil, "", before, after)
}

func diffObjects(list []Operation, at string, before, after map[string]any) []Operation {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		place := at + "/" + escape(key)
		if value, stays := after[key]; stays {
			list = diffValues(list, place, before[key], value)
		} else {
			list = append(list, Operation{Op: "remove", Path: place})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, was := before[key]; !was {
			list = append(list, Operation{Op: "add", Path: at + "/" + escape(key), Value: after[key]})
		}
	}
	return list
}

func diffValues(list []Operation, at string, before, after any) []Operation {
	switch was := before.(type) {
	case map[string]any:
		if is, ok := after.(map[string]any); ok {
			return diffObjects(list, at, was, is)
		}
	case []any:
		if is, ok := after.([]any); ok {
			return diffLists(list, at, was, is)
		}
	default:
		if reflect.DeepEqual(before, after) {
			return list
		}
	}
	return append(list, Operation{Op: "replace", Path: at, Value: after})
}

func diffLists(list []Operation, at string, before, after []any) []Operation {
	both := min(len(before), len(after))
	for i := range both {
		list = diffValues(list, at+"/"+strconv.Itoa(i), before[i], after[i])
	}
	for _, value := range after[both:] {
		list = append(list, Operation{Op: "add", Path: at + "/-", Value: value})
	}
	for i := len(before) - 1; i >= both; i-- {
		list = append(list, Operation{Op: "remove", Path: at + "/" + strconv.Itoa(i)})
	}
	return list
}

func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
