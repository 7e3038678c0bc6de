package cel

import (
	"cmp"
	"slices"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/quaymaster/quaymaster/policy/lang/cel/authorizer"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/cost"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/optional"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

// languageOptions are the language, with the libraries of Kubernetes alone or with those of Kyverno's
// SDK, too.
func languageOptions(kubernetes bool) []celgo.EnvOption {
	libraries := library.SDK(maxPrecision)
	if kubernetes {
		libraries = library.Kubernetes(maxPrecision)
	}
	return slices.Concat(authorizer.Options(), []celgo.EnvOption{
		celgo.EagerlyValidateDeclarations(true),
		celgo.DefaultUTCTimeZone(true),
		celgo.CrossTypeNumericComparisons(true),
		celgo.ParserRecursionLimit(maxNesting),
		celgo.ParserExpressionSizeLimit(maxExpression),
		celgo.OptionalTypes(),
		celgo.ASTValidators(celgo.ValidateDurationLiterals(), celgo.ValidateTimestampLiterals(), cost.PatternLiterals()),
	}, libraries)
}

// programOptions are how every expression is evaluated.
func (e *Env) programOptions(of *celgo.Ast) []celgo.ProgramOption {
	l := loops{ranges: map[int64]bool{}, steps: map[int64]bool{}}
	l.add(of.NativeRep().Expr())
	targets := optional.TargetsOf(of.NativeRep())
	decisions, failed := authorizer.DecisionsOf(of.NativeRep())
	return []celgo.ProgramOption{
		celgo.EvalOptions(celgo.OptOptimize),
		celgo.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
			decorated, err := e.decorate(i)
			if err := cmp.Or(err, failed); err != nil {
				return nil, err
			}
			return decisions.Decorate(targets.Decorate(l.decorate(decorated)), func(why error) error { return &UnknownError{Gaps: []error{why}} }), nil
		}),
	}
}

// decorate replaces the calls that an Activation answers, and prices the others.
func (e *Env) decorate(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	if overloads, ok := e.dynamic[call.Function()]; ok {
		return &lateCall{id: call.ID(), function: call.Function(), overloads: overloads, arguments: call.Args()}, nil
	}
	return e.prices.Call(call)
}

// declarations are the names of the dialect.
func (e *Env) declarations(options Options) []celgo.EnvOption {
	declared := []celgo.EnvOption{celgo.Variable(variablesName, types.NewObjectType(variablesType))}
	if !options.Mixed {
		declared = append(declared, celgo.HomogeneousAggregateLiterals())
	}
	for _, v := range options.Variables {
		declared = append(declared, celgo.Variable(v.Name, v.Type))
	}
	if !options.Kubernetes {
		declared = append(declared, library.Functions()...)
	}
	declared = append(declared, outsideOptions(options)...)
	for name, overloads := range e.dynamic {
		declared = append(declared, declare(name, overloads))
	}
	return declared
}

// declare declares a function. Its binding is never called: lateCall replaces it.
func declare(name string, overloads []Overload) celgo.EnvOption {
	unbound := celgo.FunctionBinding(func(...ref.Val) ref.Val { return types.NewErr("%s is not bound", name) })
	options := make([]celgo.FunctionOpt, 0, len(overloads))
	for _, o := range overloads {
		options = append(options, celgo.Overload(o.ID, o.Arguments, o.Result, unbound))
	}
	return celgo.Function(name, options...)
}
