// Package partial compares CEL values with unknown parts. The library treats an error inside of a
// list or a map as an equal or an unequal element.
package partial

import (
	"errors"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Map is a map of which some members may be unknown. Find returns an error as the value of
// an unknown member.
type Map interface {
	traits.Mapper
	// Unknown returns why the members are not all known; nil where they are.
	Unknown() error
}

// Decoded is a list or a map of decoded JSON of which a number may be lost.
type Decoded interface {
	// Lost returns why a number is unknown, as that of an integer past 2^53; nil where it is
	// known.
	Lost(number float64) error
}

// maxParts bounds a walk: an expression can share one part many times, so that a value is
// exponentially larger than the memory it takes.
const maxParts = 1 << 20

var errTooLarge = errors.New("a value of more than 1,048,576 parts")

// Unknown returns why a value, or a part of it, is unknown; nil where all of it is known. A
// value of more than maxParts parts counts as unknown.
func Unknown(value ref.Val) error { return (&walk{left: maxParts, numbers: true}).value(value) }

// UnknownMembers is Unknown for a function that returns parts as they are: a number that is
// unknown stays so in its result.
func UnknownMembers(value ref.Val) error { return (&walk{left: maxParts}).value(value) }

type walk struct {
	left    int
	numbers bool // that are unknown count
}

func (w *walk) value(value ref.Val) error {
	w.left--
	if w.left < 0 {
		return errTooLarge
	}
	switch v := value.(type) {
	case types.String, types.Int, types.Bool, types.Double:
		return nil
	case *types.Err:
		if w.numbers {
			return v
		}
	case Map:
		return v.Unknown()
	case *types.Optional:
		if v.HasValue() {
			return w.value(v.GetValue())
		}
	case traits.Lister:
		return w.list(v)
	case traits.Mapper:
		return w.members(v)
	}
	return nil
}

func (w *walk) list(list traits.Lister) error {
	items, native := list.Value().([]any)
	if !native {
		return w.items(list)
	}
	of, _ := list.(Decoded)
	for _, item := range items {
		if err := w.native(of, item); err != nil {
			return err
		}
	}
	return nil
}

// native walks decoded JSON, in which no more than numbers are unknown, and values.
func (w *walk) native(of Decoded, item any) error {
	if value, ok := item.(ref.Val); ok {
		return w.value(value)
	}
	if of == nil || !w.numbers {
		return nil
	}
	w.left--
	if w.left < 0 {
		return errTooLarge
	}
	switch v := item.(type) {
	case float64:
		return of.Lost(v)
	case []any:
		for _, part := range v {
			if err := w.native(of, part); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, part := range v {
			if err := w.native(of, part); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) items(list traits.Lister) error {
	for it := list.Iterator(); it.HasNext() == types.True; {
		if err := w.value(it.Next()); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) members(of traits.Mapper) error {
	if native, is := of.Value().(map[string]any); is {
		decoded, _ := of.(Decoded)
		for _, part := range native {
			if err := w.native(decoded, part); err != nil {
				return err
			}
		}
		return nil
	}
	for it := of.Iterator(); it.HasNext() == types.True; {
		if value, found := of.Find(it.Next()); found {
			if err := w.value(value); err != nil {
				return err
			}
		}
	}
	return nil
}

// viewed is a map that is read as a part of a whole, and compared as the whole.
type viewed struct {
	DecodedMap
	of traits.Mapper
}

// DecodedMap is a map of decoded JSON.
type DecodedMap interface {
	traits.Mapper
	traits.Zeroer
	Decoded
}

// View makes a map that is read as one, and that compares with others of its sort as another.
func View(view DecodedMap, of traits.Mapper) ref.Val { return &viewed{view, of} }

// Equal reports whether two values are equal. It is false where a known part differs, else
// an error where a part is unknown or is an error itself.
func Equal(a, b ref.Val) ref.Val {
	if first, is := a.(*viewed); is {
		if second, is := b.(*viewed); is {
			return equalMaps(first.of, second.of)
		}
	}
	switch a := a.(type) {
	case traits.Mapper:
		// An object of another type, such as Object{...}, compares its type as well.
		if b, ok := b.(traits.Mapper); ok && a.Type() == types.MapType && b.Type() == types.MapType {
			return equalMaps(a, b)
		}
	case traits.Lister:
		if b, ok := b.(traits.Lister); ok {
			return equalLists(a, b)
		}
	case *types.Optional:
		if b, ok := b.(*types.Optional); ok && a.HasValue() && b.HasValue() {
			return Equal(a.GetValue(), b.GetValue())
		}
	}
	for _, value := range []ref.Val{a, b} {
		if types.IsUnknownOrError(value) {
			return value
		}
	}
	return types.Equal(a, b)
}

// NotEqual is the negation of Equal.
func NotEqual(a, b ref.Val) ref.Val {
	equal := Equal(a, b)
	if types.IsUnknownOrError(equal) {
		return equal
	}
	return types.Bool(equal != types.True)
}

func equalLists(a, b traits.Lister) ref.Val {
	size, ok := a.Size().(types.Int)
	if other, is := b.Size().(types.Int); !ok || !is || size != other {
		return types.Bool(false)
	}
	var result ref.Val = types.True
	for i := range size {
		switch equal := Equal(a.Get(i), b.Get(i)); {
		case equal == types.False:
			return types.False
		case equal != types.True:
			result = equal
		}
	}
	return result
}

func equalMaps(a, b traits.Mapper) ref.Val {
	first, second := unknown(a), unknown(b)
	var result ref.Val = types.True
	switch {
	case first != nil && second != nil:
		return types.WrapErr(first)
	case second != nil:
		return equalMaps(b, a)
	case first != nil:
		result = types.WrapErr(first)
	case a.Size() != b.Size():
		return types.False
	}
	for it := b.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		other, _ := b.Find(key)
		value, found := a.Find(key)
		if !found {
			return types.False
		}
		switch equal := Equal(value, other); {
		case equal == types.False:
			return types.False
		case equal != types.True && result == types.True:
			result = equal
		}
	}
	return result
}

func unknown(of traits.Mapper) error {
	if partial, ok := of.(Map); ok {
		return partial.Unknown()
	}
	return nil
}

// Contains reports whether a container has an item: a list an element, a map a key.
func Contains(container, item ref.Val) ref.Val {
	list, ok := container.(traits.Lister)
	if !ok {
		in, ok := container.(traits.Container)
		if !ok {
			return types.MaybeNoSuchOverloadErr(container)
		}
		return in.Contains(item)
	}
	var result ref.Val = types.False
	for it := list.Iterator(); it.HasNext() == types.True; {
		switch equal := Equal(it.Next(), item); {
		case equal == types.True:
			return types.True
		case equal != types.False:
			result = equal
		}
	}
	return result
}
