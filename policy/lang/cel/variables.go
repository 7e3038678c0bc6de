package cel

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// variables is the value of the variable of that name: fields that are evaluated
// when they are read.
type variables Activation

var _ ref.Val = (*variables)(nil)

func variableField(name string, is *types.Type) *types.FieldType {
	return &types.FieldType{
		Type: is,
		IsSet: func(target any) bool {
			v, ok := target.(*variables)
			if !ok {
				return false
			}
			_, ok = v.scope.index[name]
			return ok
		},
		GetFrom: func(target any) (any, error) {
			v, ok := target.(*variables)
			if !ok {
				return nil, errors.New("variables are read of something else")
			}
			value := (*Activation)(v).variable(name)
			if err, ok := value.(*types.Err); ok {
				return nil, err
			}
			return value, nil
		},
	}
}

// ConvertToNative implements ref.Val; variables have no other form.
func (v *variables) ConvertToNative(is reflect.Type) (any, error) {
	return nil, fmt.Errorf("variables cannot become %v", is)
}

// ConvertToType implements ref.Val.
func (v *variables) ConvertToType(is ref.Type) ref.Val {
	return types.NewErr("variables cannot become %s", is.TypeName())
}

// Equal implements ref.Val.
func (v *variables) Equal(other ref.Val) ref.Val { return types.Bool(ref.Val(v) == other) }

// Type implements ref.Val.
func (v *variables) Type() ref.Type { return types.NewObjectType(variablesType) }

// Value implements ref.Val.
func (v *variables) Value() any { return v }

// Get reads a variable with a computed name.
func (v *variables) Get(name ref.Val) ref.Val {
	text, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	return (*Activation)(v).variable(string(text))
}

// IsSet reports whether a variable is declared, without evaluating it.
func (v *variables) IsSet(name ref.Val) ref.Val {
	text, ok := name.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(name)
	}
	_, ok = v.scope.index[string(text)]
	return types.Bool(ok)
}
