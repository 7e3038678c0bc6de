package cel

import (
	"context"
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Program is a compiled expression. It is immutable, and safe for concurrent use.
type Program struct {
	path, expression string
	scope            *Scope
	ast              *celgo.Ast
	prog             celgo.Program
	output           *celgo.Type
	look             look
	monotonicity     monotonicity
	step             uint64 // the cost of a step of a loop in it
}

// Path returns the field that holds the expression.
func (p *Program) Path() string { return p.path }

// Expression returns the text.
func (p *Program) Expression() string { return p.expression }

// Type returns the type of the value.
func (p *Program) Type() *celgo.Type { return p.output }

// Eval evaluates the expression. Errors are *EvalError. The activation must be of
// the scope that compiled the program.
func (p *Program) Eval(ctx context.Context, a *Activation) (ref.Val, error) {
	if a.scope != p.scope {
		return nil, &EvalError{Path: p.path, Err: errors.New("the activation is of another document")}
	}
	a.ctx, a.exceeded, a.aborted = ctx, false, nil
	value, err := a.decide(p)
	if err != nil {
		return nil, &EvalError{Path: p.path, Err: err}
	}
	return value, nil
}

// Bool evaluates an expression that was compiled to be a bool.
func (p *Program) Bool(ctx context.Context, a *Activation) (bool, error) {
	value, err := p.Eval(ctx, a)
	if err != nil {
		return false, err
	}
	held, ok := value.(types.Bool)
	if !ok {
		return false, &EvalError{Path: p.path, Err: fmt.Errorf("the value is of type %s and not bool", value.Type().TypeName())}
	}
	return bool(held), nil
}

// Text evaluates an expression that was compiled to be a string.
func (p *Program) Text(ctx context.Context, a *Activation) (string, error) {
	value, err := p.Eval(ctx, a)
	if err != nil {
		return "", err
	}
	text, ok := value.(types.String)
	if !ok {
		return "", &EvalError{Path: p.path, Err: fmt.Errorf("the value is of type %s and not string", value.Type().TypeName())}
	}
	return string(text), nil
}
