package packages

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/attest/sbom"
)

// value is a package as a map of CEL. It is read in place: making maps of ten thousand packages for every evaluation
// would take as long as parsing them.
type value struct{ *sbom.Package }

// names are the members, in their order.
func names() []string { return []string{"name", "version", "purl", "license"} }

// List makes a list of CEL of packages.
func List(of []*sbom.Package) ref.Val {
	values := make([]value, len(of))
	list := make([]ref.Val, len(of))
	for i, p := range of {
		values[i] = value{p}
		list[i] = &values[i]
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list)
}

func (v *value) whole() traits.Mapper {
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, v.members())
}

func (v *value) members() map[string]any {
	return map[string]any{"name": v.Name, "version": v.Version, "purl": v.URL, "license": v.License}
}

// Unknown implements the maps of package cel of which members may be unknown: none is.
func (*value) Unknown() error { return nil }

// Find implements traits.Mapper.
func (v *value) Find(key ref.Val) (ref.Val, bool) {
	switch key {
	case types.String("name"):
		return types.String(v.Name), true
	case types.String("version"):
		return types.String(v.Version), true
	case types.String("purl"):
		return types.String(v.URL), true
	case types.String("license"):
		return types.String(v.License), true
	}
	return v.whole().Find(key)
}

// Get implements traits.Indexer.
func (v *value) Get(key ref.Val) ref.Val {
	member, found := v.Find(key)
	if !found {
		return types.ValOrErr(member, "no such key: %v", key)
	}
	return member
}

// Contains implements traits.Container.
func (v *value) Contains(key ref.Val) ref.Val { return v.whole().Contains(key) }

// Iterator implements traits.Iterable.
func (v *value) Iterator() traits.Iterator { return v.whole().Iterator() }

// Size implements traits.Sizer.
func (v *value) Size() ref.Val { return types.Int(len(names())) }

// ConvertToNative implements ref.Val.
func (v *value) ConvertToNative(is reflect.Type) (any, error) {
	native, err := v.whole().ConvertToNative(is)
	if err != nil {
		return nil, fmt.Errorf("package: %w", err)
	}
	return native, nil
}

// ConvertToType implements ref.Val.
func (v *value) ConvertToType(is ref.Type) ref.Val { return v.whole().ConvertToType(is) }

// Equal implements ref.Val.
func (v *value) Equal(other ref.Val) ref.Val { return v.whole().Equal(other) }

// Type implements ref.Val.
func (v *value) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (v *value) Value() any { return v.members() }
