package partial

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Known makes the range of a comprehension an error where a part of it is unknown. It depends on
// every element: without the unknown ones, all() would hold and exists() would not.
func Known(elements interpreter.InterpretableV2) interpreter.InterpretableV2 {
	return Replaced(elements, func(value ref.Val) ref.Val {
		if of, ok := value.(Map); ok {
			if err := of.Unknown(); err != nil {
				return types.WrapErr(err)
			}
		}
		return value
	})
}

// Replaced returns a part of a program with another value in place of each of its values.
func Replaced(part interpreter.InterpretableV2, by func(ref.Val) ref.Val) interpreter.InterpretableV2 {
	if attribute, is := part.(interpreter.InterpretableAttribute); is {
		return replacedAttribute{attribute, by}
	}
	return replaced{part, by}
}

// replacedAttribute is a replaced part that is an attribute. The library builds the qualifier of an
// index that is computed (x['a' + 'b']) under the number of the whole index, and requires an attribute
// of it. The interface has no other method that the library evaluates such a part by.
type replacedAttribute struct {
	interpreter.InterpretableAttribute
	by func(ref.Val) ref.Val
}

// Eval implements interpreter.Interpretable.
func (r replacedAttribute) Eval(vars interpreter.Activation) ref.Val {
	return r.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (r replacedAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return r.by(r.InterpretableAttribute.Exec(frame))
}

// replaced embeds no interpretable: each method that evaluates the part replaces its value.
type replaced struct {
	part interpreter.InterpretableV2
	by   func(ref.Val) ref.Val
}

// ID implements interpreter.Interpretable.
func (r replaced) ID() int64 { return r.part.ID() }

// Eval implements interpreter.Interpretable.
func (r replaced) Eval(vars interpreter.Activation) ref.Val {
	return r.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (r replaced) Exec(frame *interpreter.ExecutionFrame) ref.Val { return r.by(r.part.Exec(frame)) }
