package cel

import (
	"fmt"
	"math"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/partial"
)

// adapter converts decoded JSON, the most common input of expressions, without the library's wrapping; it uses the library for other values.
type adapter struct{ types.Adapter }

// NativeToValue implements types.Adapter.
func (a adapter) NativeToValue(native any) ref.Val {
	switch v := native.(type) {
	case map[string]any:
		return &object{v}
	case []any:
		return &list{v}
	case float64:
		return number(v)
	}
	return a.Adapter.NativeToValue(native)
}

func toValue(native any) ref.Val { return adapter{types.DefaultTypeAdapter}.NativeToValue(native) }

// Members makes a map of CEL of the members of an object: decoded JSON or ref.Val.
func Members(of map[string]any) traits.Mapper { return &object{of} }

// number is a number of decoded JSON as Kubernetes has it: an integer where it is whole. One of which only the float64 next to
// it is left is indeterminate, since another integer may have been written.
func number(v float64) ref.Val {
	if err := lost(v); err != nil {
		return types.WrapErr(err)
	}
	if v != math.Trunc(v) || math.Abs(v) > 1<<63 {
		return types.Double(v)
	}
	return types.Int(v)
}

// lost returns why an integer is unknown.
func lost(v float64) error {
	if !integer.Rounded(v) {
		return nil
	}
	return &UnknownError{Gaps: []error{integer.Error(v)}}
}

// Doubles converts decoded JSON to a value with every number as a double. Kyverno does so for data that no Kubernetes decoder read:
// answers over HTTP, global contexts, image data and attestations.
func Doubles(native any) ref.Val { return types.DefaultTypeAdapter.NativeToValue(native) }

// object is a decoded object as a map of CEL. It and list are pointers because the library hashes the left side of `in`.
type object struct{ members map[string]any }

var (
	_ traits.Mapper   = (*object)(nil)
	_ traits.Zeroer   = (*object)(nil)
	_ partial.Decoded = (*object)(nil)
)

// whole is the library's map, for the rarely used operations.
func (o *object) whole() traits.Mapper {
	return types.NewStringInterfaceMap(adapter{types.DefaultTypeAdapter}, o.members)
}

// Lost implements partial.Decoded.
func (*object) Lost(number float64) error { return lost(number) }

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	member, ok := o.members[string(name)]
	if !ok {
		return nil, false
	}
	return toValue(member), true
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	member, found := o.Find(key)
	if !found {
		return types.ValOrErr(member, "no such key: %v", key)
	}
	return member
}

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val { return o.whole().Contains(key) }

// Iterator implements traits.Iterable.
func (o *object) Iterator() traits.Iterator { return o.whole().Iterator() }

// Size implements traits.Sizer.
func (o *object) Size() ref.Val { return types.Int(len(o.members)) }

// IsZeroValue implements traits.Zeroer.
func (o *object) IsZeroValue() bool { return len(o.members) == 0 }

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(is reflect.Type) (any, error) { return o.whole().ConvertToNative(is) }

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(is ref.Type) ref.Val { return o.whole().ConvertToType(is) }

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val { return o.whole().Equal(other) }

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return o.members }

// Viewed makes a map of CEL that expressions read as view, and compare as of: both are decoded JSON.
func Viewed(view, of map[string]any) ref.Val { return partial.View(&object{view}, &object{of}) }

// list is a decoded list as a list of CEL.
type list struct{ items []any }

var (
	_ traits.Lister   = (*list)(nil)
	_ traits.Zeroer   = (*list)(nil)
	_ partial.Decoded = (*list)(nil)
)

// whole is the library's list, for the rarely used operations.
func (l *list) whole() traits.Lister {
	return types.NewDynamicList(adapter{types.DefaultTypeAdapter}, l.items)
}

// Lost implements partial.Decoded.
func (*list) Lost(number float64) error { return lost(number) }

// Get implements traits.Indexer.
func (l *list) Get(index ref.Val) ref.Val {
	if i, ok := index.(types.Int); ok && i >= 0 && int64(i) < int64(len(l.items)) {
		return toValue(l.items[i])
	}
	return l.whole().Get(index)
}

// Add implements traits.Adder.
func (l *list) Add(other ref.Val) ref.Val { return l.whole().Add(other) }

// Contains implements traits.Container.
func (l *list) Contains(item ref.Val) ref.Val { return l.whole().Contains(item) }

// Iterator implements traits.Iterable.
func (l *list) Iterator() traits.Iterator { return &items{of: l.items} }

// Size implements traits.Sizer.
func (l *list) Size() ref.Val { return types.Int(len(l.items)) }

// IsZeroValue implements traits.Zeroer.
func (l *list) IsZeroValue() bool { return len(l.items) == 0 }

// ConvertToNative implements ref.Val.
func (l *list) ConvertToNative(is reflect.Type) (any, error) { return l.whole().ConvertToNative(is) }

// ConvertToType implements ref.Val.
func (l *list) ConvertToType(is ref.Type) ref.Val { return l.whole().ConvertToType(is) }

// Equal implements ref.Val.
func (l *list) Equal(other ref.Val) ref.Val { return l.whole().Equal(other) }

// Type implements ref.Val.
func (l *list) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *list) Value() any { return l.items }

// items goes through a list.
type items struct {
	of   []any
	next int
}

// HasNext implements traits.Iterator.
func (i *items) HasNext() ref.Val { return types.Bool(i.next < len(i.of)) }

// Next implements traits.Iterator.
func (i *items) Next() ref.Val {
	if i.next >= len(i.of) {
		return nil
	}
	i.next++
	return toValue(i.of[i.next-1])
}

// ConvertToNative implements ref.Val.
func (i *items) ConvertToNative(is reflect.Type) (any, error) {
	return nil, fmt.Errorf("an iterator cannot become %v", is)
}

// ConvertToType implements ref.Val.
func (i *items) ConvertToType(ref.Type) ref.Val { return types.NewErr("no such overload") }

// Equal implements ref.Val.
func (i *items) Equal(ref.Val) ref.Val { return types.NewErr("no such overload") }

// Type implements ref.Val.
func (i *items) Type() ref.Type { return types.IteratorType }

// Value implements ref.Val.
func (i *items) Value() any { return nil }
