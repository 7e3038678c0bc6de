package cel

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel/patchtype"
)

const (
	// variablesName is the variable that holds the document's own.
	variablesName = "variables"
	variablesType = "quaymaster.variables"
)

// provider adds types with fields to those of the environment.
type provider struct {
	types.Provider
	objects map[string]map[string]*types.FieldType
	// patches: expressions may make values of the types of package patchtype.
	patches bool
}

// FindStructType implements types.Provider.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.objects[name]; ok || p.patches && patchtype.IsType(name) {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	fields, ok := p.objects[name]
	switch {
	case p.patches && patchtype.IsType(name):
		return nil, true // any name
	case !ok:
		return p.Provider.FindStructFieldNames(name)
	}
	return slices.Sorted(maps.Keys(fields)), true
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	fields, ok := p.objects[name]
	switch {
	case p.patches && patchtype.IsType(name):
		return patchtype.FieldType(name, field)
	case !ok:
		return p.Provider.FindStructFieldType(name, field)
	}
	is, ok := fields[field]
	return is, ok
}

// NewValue prevents expressions from creating values of these types, except for the types that
// are meant for it.
func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := p.objects[name]; ok {
		return types.NewErr("%s cannot be made by an expression", name)
	}
	if p.patches && patchtype.IsType(name) {
		return patchtype.New(name, fields)
	}
	return p.Provider.NewValue(name, fields)
}
