// Package optional lets a plain value of CEL be used as the optional of it (cel-spec 0.25, optional
// values). cel-go below 0.28, which API servers and Kyverno's policies were written for, returns
// the value of x.orValue(y) where x is no optional; newer ones have no such overload.
package optional

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/fieldcheck"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/partial"
)

// Targets are the parts of an expression, by their number, that have functions of optionals.
type Targets map[int64]bool

// TargetsOf returns the targets in a checked expression. A target of a type that is known, and is
// no optional, was refused by the check.
func TargetsOf(checked *ast.AST) Targets {
	t := Targets{}
	t.add(checked, checked.Expr())
	return t
}

func (t Targets) add(checked *ast.AST, e ast.Expr) {
	if e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() && slices.ContainsFunc(checked.GetOverloadIDs(e.ID()), ofOptional) {
		t[e.AsCall().Target().ID()] = true
	}
	for _, part := range fieldcheck.Parts(e) {
		t.add(checked, part)
	}
}

// ofOptional reports whether the target of an overload is an optional. That of another function of
// the library is not: unwrapOpt is of a list.
func ofOptional(overload string) bool {
	switch overload {
	case "optional_value", "optional_hasValue", "optional_or_optional", "optional_orValue_value":
		return true
	}
	return false
}

// Decorate returns the part of a program, as a target if it is one.
func (t Targets) Decorate(part interpreter.InterpretableV2) interpreter.InterpretableV2 {
	if !t[part.ID()] {
		return part
	}
	return partial.Replaced(part, of)
}

func of(value ref.Val) ref.Val {
	switch value.(type) {
	case *types.Optional, *types.Err, *types.Unknown:
		return value
	}
	return types.OptionalOf(value)
}
