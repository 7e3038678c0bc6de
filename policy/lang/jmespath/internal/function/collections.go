package function

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// labelMatch reports whether every label of the first is in the second, with a value of the same
// kind.
func labelMatch(a Arguments) (any, error) {
	for key, want := range a.Object(0) {
		got, ok := a.Object(1)[key]
		if !ok || KindOf(got) != KindOf(want) || Text(got) != Text(want) {
			return false, nil
		}
	}
	return true, nil
}

// lookup returns null for a key or an index that is not there.
func lookup(a Arguments) (any, error) {
	if object, ok := a[0].(map[string]any); ok {
		key, ok := a[1].(string)
		if !ok {
			return nil, errors.New("argument 2: want a string, to look into an object")
		}
		return object[key], nil
	}
	index, ok := a[1].(float64)
	if !ok || index != math.Trunc(index) {
		return nil, errors.New("argument 2: want a whole number, to look into an array")
	}
	if list := a.List(0); index >= 0 && index < float64(len(list)) {
		return list[int(index)], nil
	}
	return nil, nil
}

// items turns an object, in the order of its keys, or an array into an array
// of objects with a key and a value.
func items(a Arguments) (any, error) {
	keyName, valueName := a.Text(1), a.Text(2)
	if list, ok := a[0].([]any); ok {
		result := make([]any, len(list))
		for i, value := range list {
			result[i] = map[string]any{keyName: float64(i), valueName: value}
		}
		return result, nil
	}
	object := a.Object(0)
	result := make([]any, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		result = append(result, map[string]any{keyName: key, valueName: object[key]})
	}
	return result, nil
}

// objectFromLists pairs keys with values; keys that find no value get null.
func objectFromLists(a Arguments) (any, error) {
	keys, values := a.List(0), a.List(1)
	result := make(map[string]any, len(keys))
	for i, item := range keys {
		key, err := keyOf(item)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		result[key] = nil
		if i < len(values) {
			result[key] = values[i]
		}
	}
	return result, nil
}

// keyOf writes a number or boolean as text, as Kyverno does.
func keyOf(item any) (string, error) {
	switch v := item.(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("want a string, a number or a boolean, got %s", KindOf(item))
}

func keys(a Arguments) (any, error) {
	result := make([]any, 0, len(a.Object(0)))
	for _, key := range slices.Sorted(maps.Keys(a.Object(0))) {
		result = append(result, key)
	}
	return result, nil
}

// Values returns the values of an object, in the order of its keys.
func Values(a Arguments) (any, error) {
	result := make([]any, 0, len(a.Object(0)))
	for _, key := range slices.Sorted(maps.Keys(a.Object(0))) {
		result = append(result, a.Object(0)[key])
	}
	return result, nil
}

// toString bounds its text by its input, because an escape is longer than its character.
func toString(a Arguments) (any, error) {
	budget := 2 * MaxText
	Spend(a[0], &budget)
	if budget < 0 {
		return nil, fmt.Errorf("the value %w of %d bytes", ErrTooLarge, 2*MaxText)
	}
	return Text(a[0]), nil
}
