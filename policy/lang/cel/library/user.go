package library

import (
	"errors"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	serviceAccountType   = "user.ServiceAccount"
	serviceAccountPrefix = "system:serviceaccount:"
)

// serviceAccount is the parsed form of a service account's user name; both fields are empty for
// any other user.
type serviceAccount struct{ namespace, name string }

var _ ref.Val = serviceAccount{}

func userFunctions() []cel.EnvOption {
	return function("parse_service_account_string", []*cel.Type{cel.StringType}, types.NewObjectType(serviceAccountType), text(parseServiceAccount),
		"user.parseServiceAccount", "parseServiceAccount")
}

func parseServiceAccount(user string) (ref.Val, error) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return serviceAccount{}, nil
	}
	namespace, name, ok := strings.Cut(rest, ":")
	if !ok {
		return serviceAccount{}, nil
	}
	return serviceAccount{namespace: namespace, name: name}, nil
}

func serviceAccountFields() map[string]*types.FieldType {
	field := func(get func(serviceAccount) string) *types.FieldType {
		return &types.FieldType{
			Type: types.StringType,
			IsSet: func(target any) bool {
				account, ok := target.(serviceAccount)
				return ok && get(account) != ""
			},
			GetFrom: func(target any) (any, error) {
				account, ok := target.(serviceAccount)
				if !ok {
					return nil, errors.New("this is no service account")
				}
				return get(account), nil
			},
		}
	}
	return map[string]*types.FieldType{
		"Name":      field(func(s serviceAccount) string { return s.name }),
		"Namespace": field(func(s serviceAccount) string { return s.namespace }),
	}
}

// ConvertToNative implements ref.Val.
func (s serviceAccount) ConvertToNative(reflect.Type) (any, error) {
	return opaque{types.NewObjectType(serviceAccountType)}.native()
}

// ConvertToType implements ref.Val.
func (s serviceAccount) ConvertToType(to ref.Type) ref.Val {
	return opaque{types.NewObjectType(serviceAccountType)}.convert(to)
}

// Equal implements ref.Val.
func (s serviceAccount) Equal(other ref.Val) ref.Val { return types.Bool(ref.Val(s) == other) }

// Type implements ref.Val.
func (s serviceAccount) Type() ref.Type { return types.NewObjectType(serviceAccountType) }

// Value implements ref.Val.
func (s serviceAccount) Value() any { return s }

// Get reads a field of a value with a dynamic type.
func (s serviceAccount) Get(field ref.Val) ref.Val {
	switch field {
	case types.String("Name"):
		return types.String(s.name)
	case types.String("Namespace"):
		return types.String(s.namespace)
	}
	return types.NewErr("no such field of a service account: %v", field.Value())
}

// IsSet reports whether a value with a dynamic type has a field.
func (s serviceAccount) IsSet(field ref.Val) ref.Val {
	value, ok := s.Get(field).(types.String)
	return types.Bool(ok && value != "")
}
