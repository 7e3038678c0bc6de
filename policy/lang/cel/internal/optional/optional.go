// Package optional lets a plain value of CEL be used as the optional of it (cel-spec 0.25, optional
// values). cel-go below 0.28, which API servers and Kyverno's policies were written for, returns
// the value of x.orValue(y) where x is no optional; newer ones have no such overload.
package optional

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/fieldcheck"
)

// Targets are the parts of an expression whose functions are those of optionals, by their number.
type Targets map[int64]bool

// TargetsOf returns the targets in a checked expression. A target of a type that is known, and is
// no optional, was refused by the check.
func TargetsOf(checked *ast.AST) Targets {
	t := Targets{}
	t.add(checked, checked.Expr())
	return t
}

func (t Targets) add(checked *ast.AST, e ast.Expr) {
	isOptional := func(overload string) bool { return strings.HasPrefix(overload, "optional_") }
	if e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() && slices.ContainsFunc(checked.GetOverloadIDs(e.ID()), isOptional) {
		t[e.AsCall().Target().ID()] = true
	}
	for _, part := range fieldcheck.Parts(e) {
		t.add(checked, part)
	}
}

// Decorate returns the part of a program, as a target if it is one.
func (t Targets) Decorate(part interpreter.InterpretableV2) interpreter.InterpretableV2 {
	if !t[part.ID()] {
		return part
	}
	if attribute, is := part.(interpreter.InterpretableAttribute); is {
		return targetAttribute{attribute}
	}
	return target{part}
}

// targetAttribute is a target that is an attribute, as the library requires of a part whose number
// a computed index has, too.
type targetAttribute struct {
	interpreter.InterpretableAttribute
}

// Eval implements interpreter.Interpretable.
func (t targetAttribute) Eval(vars interpreter.Activation) ref.Val {
	return t.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (t targetAttribute) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return of(t.InterpretableAttribute.Exec(frame))
}

// target is the target of a function of optionals. It embeds no interpretable: each method that
// evaluates it returns an optional.
type target struct{ part interpreter.InterpretableV2 }

// ID implements interpreter.Interpretable.
func (t target) ID() int64 { return t.part.ID() }

// Eval implements interpreter.Interpretable.
func (t target) Eval(vars interpreter.Activation) ref.Val {
	return t.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (t target) Exec(frame *interpreter.ExecutionFrame) ref.Val { return of(t.part.Exec(frame)) }

func of(value ref.Val) ref.Val {
	switch value.(type) {
	case *types.Optional, *types.Err, *types.Unknown:
		return value
	}
	return types.OptionalOf(value)
}
