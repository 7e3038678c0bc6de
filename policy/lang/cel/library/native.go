package library

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// Native converts a value to decoded JSON: maps with text as keys, lists, texts, numbers,
// booleans and null. It refuses values that JSON cannot represent, that are nested deeper than
// 256 or larger than 4 MiB.
func Native(value ref.Val) (any, error) {
	n := native{left: maxText}
	return n.of(value, 0)
}

// Structure is a value with named fields, which is read in place of the map of them.
type Structure interface{ Fields() map[string]ref.Val }

type native struct{ left int }

func (n *native) of(value ref.Val, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the value is nested deeper than %d", maxDepth)
	}
	n.left -= 1 + length(value)
	if n.left < 0 {
		return nil, &limit.ExceededError{What: "the value", Most: maxText}
	}
	switch v := value.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uint64(v), nil
	case types.Double:
		return float64(v), nil
	case types.String:
		return string(v), nil
	case types.Bytes:
		return []byte(v), nil
	case types.Timestamp, types.Duration:
		text, ok := value.ConvertToType(types.StringType).(types.String)
		if !ok {
			return nil, fmt.Errorf("a %s has no text", value.Type().TypeName())
		}
		return string(text), nil
	case Structure:
		return n.structure(v.Fields(), depth)
	case traits.Lister:
		return n.list(v, depth)
	case traits.Mapper:
		return n.object(v, depth)
	}
	return nil, fmt.Errorf("JSON has no word for a value of type %s", value.Type().TypeName())
}

// length is that of a text, in bytes.
func length(value ref.Val) int {
	switch v := value.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

func (n *native) list(v traits.Lister, depth int) (any, error) {
	list := []any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		item, err := n.of(it.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

func (n *native) structure(fields map[string]ref.Val, depth int) (any, error) {
	object := make(map[string]any, len(fields))
	for name, field := range fields {
		n.left -= len(name)
		item, err := n.of(field, depth+1)
		if err != nil {
			return nil, err
		}
		object[name] = item
	}
	return object, nil
}

func (n *native) object(v traits.Mapper, depth int) (any, error) {
	object := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("JSON has no key of type %s", key.Type().TypeName())
		}
		n.left -= len(name)
		item, err := n.of(v.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		object[string(name)] = item
	}
	return object, nil
}
