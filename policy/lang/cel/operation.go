package cel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// CheckOperation returns an error for a program that compares the request's operation with a text
// that is none: the comparison has the same result for every request.
func (p *Program) CheckOperation() error {
	for _, call := range p.look.calls {
		var with []ast.Expr
		switch call.Function {
		case operators.Equals, operators.NotEquals:
			with = []ast.Expr{call.Arguments[0].expr, call.Arguments[1].expr}
		case operators.In:
			with = []ast.Expr{call.Arguments[0].expr}
			if list := call.Arguments[1].expr; list.Kind() == ast.ListKind {
				with = append(with, list.AsList().Elements()...)
			}
		}
		if !slices.ContainsFunc(with, call.readsOperation) {
			continue
		}
		operations := builtin.Operations()
		for _, one := range with {
			if one.Kind() != ast.LiteralKind {
				continue
			}
			if text, ok := one.AsLiteral().(types.String); ok && !slices.Contains(operations, string(text)) {
				return &CompileError{Path: p.path, Err: fmt.Errorf("request.operation is never %q: it is one of %s", string(text), strings.Join(operations, ", "))}
			}
		}
	}
	return nil
}

func (c FunctionCall) readsOperation(e ast.Expr) bool {
	read, ok := readOf(e, c.Arguments[0].bound)
	return ok && read == Read{Variable: "request", Field: "operation"}
}
