package cel

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/partial"
)

// PartialObject is an object of which some members may be unknown. An expression that
// depends on one of those is an *UnknownError.
type PartialObject interface {
	// Member returns a member that is known: decoded JSON or ref.Val.
	Member(name string) (any, bool)
	// Unknown returns why a member that Member does not have is unknown; nil where it is
	// absent.
	Unknown(name string) error
	// Members returns all members, or why some are unknown.
	Members() (map[string]any, error)
}

// Partial makes a map of CEL of an object. A member is made when an expression reads it.
func Partial(of PartialObject) traits.Mapper { return &partialMap{of} }

type partialMap struct{ of PartialObject }

var (
	_ partial.Map   = (*partialMap)(nil)
	_ traits.Zeroer = (*partialMap)(nil)
)

// Unknown implements partial.Map.
func (p *partialMap) Unknown() error {
	_, err := p.of.Members()
	if err != nil {
		return &UnknownError{Gaps: []error{err}}
	}
	return nil
}

// whole is the map for an expression that depends on every member.
func (p *partialMap) whole() (*object, ref.Val) {
	members, err := p.of.Members()
	if err != nil {
		return nil, types.WrapErr(&UnknownError{Gaps: []error{err}})
	}
	return &object{members}, nil
}

// Find implements traits.Mapper.
func (p *partialMap) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	if value, known := p.of.Member(string(name)); known {
		return toValue(value), true
	}
	if err := p.of.Unknown(string(name)); err != nil {
		return types.WrapErr(&UnknownError{Gaps: []error{err}}), true
	}
	return nil, false
}

// Get implements traits.Indexer.
func (p *partialMap) Get(key ref.Val) ref.Val {
	value, found := p.Find(key)
	if !found {
		return types.ValOrErr(value, "no such key: %v", key)
	}
	return value
}

// Contains implements traits.Container.
func (p *partialMap) Contains(key ref.Val) ref.Val {
	value, found := p.Find(key)
	if value != nil && types.IsUnknownOrError(value) {
		return value
	}
	return types.Bool(found)
}

// Iterator implements traits.Iterable. The iterator over members that are not all known
// has one element, an error.
func (p *partialMap) Iterator() traits.Iterator {
	whole, err := p.whole()
	if err != nil {
		return types.NewRefValList(types.DefaultTypeAdapter, []ref.Val{err}).Iterator()
	}
	return whole.Iterator()
}

// Size implements traits.Sizer.
func (p *partialMap) Size() ref.Val {
	whole, err := p.whole()
	if err != nil {
		return err
	}
	return whole.Size()
}

// IsZeroValue implements traits.Zeroer. A call that asks for it has no partial map as an
// argument.
func (p *partialMap) IsZeroValue() bool {
	whole, err := p.whole()
	return err == nil && whole.IsZeroValue()
}

// ConvertToNative implements ref.Val.
func (p *partialMap) ConvertToNative(is reflect.Type) (any, error) {
	whole, err := p.whole()
	if err != nil {
		return nil, p.Unknown()
	}
	return whole.ConvertToNative(is)
}

// ConvertToType implements ref.Val.
func (p *partialMap) ConvertToType(is ref.Type) ref.Val {
	if is == types.MapType {
		return p
	}
	return (&object{}).ConvertToType(is)
}

// Equal implements ref.Val.
func (p *partialMap) Equal(other ref.Val) ref.Val {
	if _, ok := other.(traits.Mapper); !ok || other.Type() != types.MapType {
		return types.False
	}
	return partial.Equal(p, other)
}

// Type implements ref.Val.
func (p *partialMap) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (p *partialMap) Value() any { return p.of }
