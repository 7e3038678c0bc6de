package partial

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Known makes the range of a comprehension an error where a part of it is unknown.
func Known(elements interpreter.InterpretableV2) interpreter.InterpretableV2 {
	if attribute, is := elements.(interpreter.InterpretableAttribute); is {
		return knownAttribute{attribute}
	}
	return knownRange{elements}
}

// knownAttribute is a knownRange that is an attribute. The library builds the qualifier of an index
// that is computed (x['a' + 'b']) under the number of the whole index, and requires an attribute
// of it. The interface has no other method that a comprehension evaluates its range by.
type knownAttribute struct {
	interpreter.InterpretableAttribute
}

// Eval implements interpreter.Interpretable.
func (r knownAttribute) Eval(vars interpreter.Activation) ref.Val {
	return r.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (r knownAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return knownRange{r.InterpretableAttribute}.Exec(frame)
}

// knownRange is the range of a comprehension, which depends on every element: without the
// unknown ones, all() would hold and exists() would not. It embeds no interpretable: each
// method that evaluates the range checks its value.
type knownRange struct{ elements interpreter.InterpretableV2 }

// ID implements interpreter.Interpretable.
func (r knownRange) ID() int64 { return r.elements.ID() }

// Eval implements interpreter.Interpretable.
func (r knownRange) Eval(vars interpreter.Activation) ref.Val {
	return r.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (r knownRange) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := r.elements.Exec(frame)
	if of, ok := value.(Map); ok {
		if err := of.Unknown(); err != nil {
			return types.WrapErr(err)
		}
	}
	return value
}
