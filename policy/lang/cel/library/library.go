package library

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// The limits of foreign input.
const (
	// maxText bounds each text that a function makes, in bytes.
	maxText = 4 << 20
	// maxDocument bounds JSON and YAML that is parsed, in bytes: objects of Kubernetes
	// have at most 1.5 MiB, and small values take many times their text in memory.
	maxDocument = 2 << 20
	// maxDepth bounds values that are written as JSON.
	maxDepth = 256
	// maxDigits bounds the places that math.round keeps, before and after the point.
	maxDigits = 300
)

// Functions declares everything that depends on the arguments alone. The types of
// Objects must be known to the environment's type provider, and the variables json
// and yaml have the values JSON and YAML.
func Functions() []cel.EnvOption {
	var all []cel.EnvOption
	for _, part := range [][]cel.EnvOption{
		imageFunctions(), userFunctions(), hashFunctions(), mathFunctions(), timeFunctions(),
		transformFunctions(), gzipFunctions(), documentFunctions(), certificateFunctions(),
	} {
		all = append(all, part...)
	}
	return all
}

// Objects are the types with fields, by name and field.
func Objects() map[string]map[string]*types.FieldType {
	all := kubernetesObjects()
	all[serviceAccountType] = serviceAccountFields()
	return all
}

// function declares one overload under several names.
func function(id string, arguments []*cel.Type, result *cel.Type, binding cel.OverloadOpt, names ...string) []cel.EnvOption {
	options := make([]cel.EnvOption, 0, len(names))
	for i, name := range names {
		unique := id
		if i > 0 {
			unique = fmt.Sprintf("%s_%d", id, i)
		}
		options = append(options, cel.Function(name, cel.Overload(unique, arguments, result, binding)))
	}
	return options
}

// member declares a function of a receiver, which is the first argument.
func member(name, id string, arguments []*cel.Type, result *cel.Type, binding cel.OverloadOpt) cel.EnvOption {
	return cel.Function(name, cel.MemberOverload(id, arguments, result, binding))
}

// text binds a function of one text.
func text(of func(string) (ref.Val, error)) cel.OverloadOpt {
	return cel.UnaryBinding(func(argument ref.Val) ref.Val {
		s, ok := argument.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(argument)
		}
		return valueOr(of(string(s)))
	})
}

func valueOr(value ref.Val, err error) ref.Val {
	if err != nil {
		return types.WrapErr(err)
	}
	return value
}

// opaque implements the conversions of values that expressions only pass to functions.
type opaque struct{ is *types.Type }

func (o opaque) convert(to ref.Type) ref.Val {
	if to == types.TypeType {
		return o.is
	}
	return types.NewErr("%s cannot become %s", o.is.TypeName(), to.TypeName())
}

func (o opaque) native() (any, error) {
	return nil, errors.New(o.is.TypeName() + " has no other form")
}
