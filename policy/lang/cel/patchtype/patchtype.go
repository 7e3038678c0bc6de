// Package patchtype has the types of which expressions that mutate an object make values: Object{...},
// a part of an object for a merge, and JSONPatch{...}, an operation of RFC 6902. They are those of
// MutatingAdmissionPolicy (KEP 3962), which Kyverno's MutatingPolicy shares.
package patchtype

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

const (
	objectType = "Object"
	patchType  = "JSONPatch"
	// maxNesting bounds how deep the values of an Object are nested, as the brackets of an expression
	// are: checkNames is recursive.
	maxNesting = 100
)

// ObjectType is the type of Object{...}, a part of an object for a merge. The types of its fields
// are named by their paths, as in Object.spec.
func ObjectType() *celgo.Type { return types.NewObjectType(objectType) }

// PatchType is the type of JSONPatch{op: ..., path: ...}, an operation of RFC 6902.
func PatchType() *celgo.Type { return types.NewObjectType(patchType) }

// IsType reports whether a name is that of one of these types.
func IsType(name string) bool {
	return name == patchType || name == objectType || strings.HasPrefix(name, objectType+".")
}

// FieldType declares a field: an Object has any, a JSONPatch those of an operation.
func FieldType(of, name string) (*types.FieldType, bool) {
	if of != patchType {
		return &types.FieldType{Type: celgo.DynType}, true
	}
	switch name {
	case "op", "path", "from":
		return &types.FieldType{Type: celgo.StringType}, true
	case "value":
		return &types.FieldType{Type: celgo.DynType}, true
	}
	return nil, false
}

// made is a value of such a type; readers see it as a map.
type made struct {
	traits.Mapper
	is     *types.Type
	fields map[string]ref.Val
}

// New returns a value of the type with the name. It keeps the fields.
func New(name string, fields map[string]ref.Val) ref.Val {
	return &made{Mapper: types.NewDynamicMap(types.DefaultTypeAdapter, fields), is: types.NewObjectType(name), fields: fields}
}

// Fields implements library.Structure.
func (m *made) Fields() map[string]ref.Val { return m.fields }

// ConvertToNative implements ref.Val.
func (m *made) ConvertToNative(is reflect.Type) (any, error) { return m.Mapper.ConvertToNative(is) }

// ConvertToType implements ref.Val.
func (m *made) ConvertToType(is ref.Type) ref.Val {
	switch is {
	case types.TypeType:
		return m.is
	case ref.Type(m.is):
		return m
	}
	return types.NewErr("%s cannot become %s", m.is.TypeName(), is.TypeName())
}

// Equal implements ref.Val.
func (m *made) Equal(other ref.Val) ref.Val {
	o, ok := other.(*made)
	if !ok || o.is.TypeName() != m.is.TypeName() {
		return types.False
	}
	return m.Mapper.Equal(o.Mapper)
}

// Type implements ref.Val.
func (m *made) Type() ref.Type { return m.is }

// Value implements ref.Val.
func (m *made) Value() any { return m }

// Operation is the result of an expression with JSONPatch{...}.
type Operation struct {
	Op, Path, From string
	// Value is decoded JSON with int64 for ints; HasValue is false where there is none.
	Value    any
	HasValue bool
}

// Object returns the result of an expression with Object{...} as decoded JSON, with int64 for
// ints. A part with a type that does not match its path is an error, as in Kubernetes: it belongs
// to another field.
func Object(value ref.Val) (map[string]any, error) {
	native, err := library.Native(value) // bounds the traversal below
	if err != nil {
		return nil, err
	}
	if err := checkNames(value, "", objectType, 0); err != nil {
		return nil, err
	}
	object, ok := native.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("a value of type %s is no Object", value.Type().TypeName())
	}
	return object, nil
}

// Operations reads a list of JSONPatch{...}, of at most the given number.
func Operations(value ref.Val, most int) ([]Operation, error) {
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("a value of type %s is no list of JSONPatch", value.Type().TypeName())
	}
	var all []Operation
	for it := list.Iterator(); it.HasNext() == types.True; {
		one, ok := it.Next().(*made)
		if !ok || one.is.TypeName() != patchType {
			return nil, errors.New("the list holds more than JSONPatch{...}")
		}
		if len(all) == most {
			return nil, fmt.Errorf("the patch has more than %d operations", most)
		}
		o := Operation{Op: one.text("op"), Path: one.text("path"), From: one.text("from")}
		if v, ok := one.fields["value"]; ok {
			var err error
			o.Value, err = library.Native(v)
			if err != nil {
				return nil, fmt.Errorf("the value of %s %s: %w", o.Op, o.Path, err)
			}
			if m, ok := v.(*made); ok {
				if err := checkNames(v, "", m.is.TypeName(), 0); err != nil {
					return nil, err
				}
			}
			o.HasValue = true
		}
		all = append(all, o)
	}
	return all, nil
}

// NameError is the error for a part that belongs to another field.
type NameError struct{ Found, Expected string }

// Error implements error.
func (e *NameError) Error() string {
	return fmt.Sprintf("%s{...} is used for a field of type %s{...}", e.Found, e.Expected)
}

func (m *made) text(name string) string {
	text, _ := m.fields[name].(types.String)
	return string(text)
}

// checkNames compares the names of types with the locations of their values: a field of a type. Lists and maps have
// no names.
func checkNames(value ref.Val, of, field string, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("the value is nested deeper than %d", maxNesting)
	}
	switch v := value.(type) {
	case *made:
		name := v.is.TypeName()
		if !isNameOf(name, of, field) {
			return &NameError{Found: name, Expected: strings.TrimPrefix(of+"."+field, ".")}
		}
		for field, value := range v.fields {
			if err := checkNames(value, name, field, depth+1); err != nil {
				return err
			}
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if err := checkNames(it.Next(), of, field, depth+1); err != nil {
				return err
			}
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if err := checkNames(v.Get(it.Next()), of, field, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// isNameOf reports whether a name is that of a field of a type, or the field alone where there is no type.
func isNameOf(name, of, field string) bool {
	if of == "" {
		return name == field
	}
	rest, ok := strings.CutPrefix(name, of)
	return ok && len(rest) == len(field)+1 && rest[0] == '.' && rest[1:] == field
}
