package cost

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// weight is the cost of traversing a whole value; it stops above MaxCost.
func weight(value ref.Val) uint64 {
	w := weigher{}
	w.value(value)
	return w.sum
}

type weigher struct{ sum uint64 }

func (w *weigher) value(value ref.Val) {
	switch v := value.(type) {
	case types.String:
		w.sum += uint64(len(v)) / textUnit
	case types.Bytes:
		w.sum += uint64(len(v)) / textUnit
	case traits.Lister:
		if native, ok := v.Value().([]any); ok {
			w.native(native)
			return
		}
		for it := v.Iterator(); it.HasNext() == types.True && w.sum <= MaxCost; {
			w.sum++
			w.value(it.Next())
		}
	case traits.Mapper:
		if native, ok := v.Value().(map[string]any); ok {
			w.native(native)
			return
		}
		for it := v.Iterator(); it.HasNext() == types.True && w.sum <= MaxCost; {
			key := it.Next()
			w.sum++
			w.value(key)
			w.value(v.Get(key))
		}
	}
}

// native weighs decoded JSON without making values of it.
func (w *weigher) native(value any) {
	switch v := value.(type) {
	case string:
		w.sum += uint64(len(v)) / textUnit
	case []any:
		for _, item := range v {
			w.sum++
			if w.sum > MaxCost {
				return
			}
			w.native(item)
		}
	case map[string]any:
		for key, item := range v {
			w.sum += 1 + uint64(len(key))/textUnit
			if w.sum > MaxCost {
				return
			}
			w.native(item)
		}
	case ref.Val:
		w.value(v)
	}
}

// shallow is the cost of creating a value that a function returned.
func shallow(value ref.Val) uint64 {
	switch v := value.(type) {
	case types.String:
		return uint64(len(v)) / textUnit
	case types.Bytes:
		return uint64(len(v)) / textUnit
	case traits.MutableLister:
		return 0 // the list that a macro builds, one item a step
	case traits.Lister:
		return size(v)
	}
	return 0
}

func size(list traits.Lister) uint64 {
	n, _ := list.Size().(types.Int)
	return uint64(max(n, 0))
}
