package cel

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/partial"
)

// lateCall is a call of a function that each Activation implements. It finds the
// Activation by a name that no expression can write; so programs are shared, and
// nothing is bound when they are made. It embeds no interpretable, so that no method of the
// library calls the function by its declaration.
type lateCall struct {
	id        int64
	function  string
	overloads []Overload
	arguments []interpreter.InterpretableV2
}

// ID implements interpreter.Interpretable.
func (c *lateCall) ID() int64 { return c.id }

// Eval implements interpreter.Interpretable.
func (c *lateCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (c *lateCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	arguments := make([]ref.Val, len(c.arguments))
	for i, argument := range c.arguments {
		arguments[i] = argument.Exec(frame)
		if types.IsUnknownOrError(arguments[i]) {
			return arguments[i]
		}
		if err := partial.Unknown(arguments[i]); err != nil {
			return types.WrapErr(err)
		}
	}
	if !c.takes(arguments) {
		return types.NewErr("%s does not take these arguments: no such overload", c.function)
	}
	a, ok := activationOf(frame)
	if !ok {
		return types.NewErr("%s is called without an activation", c.function)
	}
	return types.LabelErrNode(c.id, a.call(c.function, arguments))
}

// activationOf returns the Activation of an evaluation.
func activationOf(frame *interpreter.ExecutionFrame) (*Activation, bool) {
	self, _ := frame.ResolveName(selfName)
	a, ok := self.(*Activation)
	return a, ok
}

// takes reports whether one overload accepts the arguments. Their types may be known only at run
// time.
func (c *lateCall) takes(arguments []ref.Val) bool {
	for _, overload := range c.overloads {
		if fits(overload.Arguments, arguments) {
			return true
		}
	}
	return false
}

func fits(want []*types.Type, arguments []ref.Val) bool {
	if len(want) != len(arguments) {
		return false
	}
	for i, is := range want {
		switch is.Kind() {
		case types.DynKind, types.AnyKind:
		default:
			if arguments[i].Type().TypeName() != is.TypeName() {
				return false
			}
		}
	}
	return true
}

// call calls a function of the activation.
func (a *Activation) call(function string, arguments []ref.Val) ref.Val {
	value, err := a.answer(function, arguments)
	if err != nil {
		return types.WrapErr(err)
	}
	if count, ok := value.(Count); ok {
		if err := count.check(); err != nil {
			return types.NewErr("%s: %v", function, err)
		}
		if count.known() {
			return types.Int(count.Lower)
		}
		return types.Int(a.countRange.pick(callKey(function, arguments), count))
	}
	return a.value(value)
}

// value makes a value of CEL of decoded JSON, without copying it.
func (a *Activation) value(native any) ref.Val {
	return a.scope.cel.CELTypeAdapter().NativeToValue(native)
}

func (a *Activation) answer(function string, arguments []ref.Val) (any, error) {
	switch function {
	case nowName:
		return a.clock()
	case randomName, randomLongName:
		return a.random(arguments)
	}
	call, ok := a.inputs.Functions[function]
	if !ok {
		return nil, errNotSupplied(function)
	}
	return call(a.ctx, arguments)
}
