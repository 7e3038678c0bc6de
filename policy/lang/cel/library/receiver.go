package library

import (
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Receiver is the value of a variable that has only functions.
type Receiver struct{ is *types.Type }

var _ ref.Val = Receiver{}

// JSON is the value of the variable json.
func JSON() Receiver { return Receiver{is: types.NewOpaqueType("json.Json")} }

// YAML is the value of the variable yaml.
func YAML() Receiver { return Receiver{is: types.NewOpaqueType("yaml.Yaml")} }

// ConvertToNative implements ref.Val.
func (r Receiver) ConvertToNative(reflect.Type) (any, error) { return opaque(r).native() }

// ConvertToType implements ref.Val.
func (r Receiver) ConvertToType(to ref.Type) ref.Val { return opaque(r).convert(to) }

// Equal implements ref.Val.
func (r Receiver) Equal(other ref.Val) ref.Val {
	return types.Bool(r.is.TypeName() == other.Type().TypeName())
}

// Type implements ref.Val.
func (r Receiver) Type() ref.Type { return r.is }

// Value implements ref.Val.
func (r Receiver) Value() any { return r }
