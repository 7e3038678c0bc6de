package cel

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Hidden is for a program that ended with a known error, or with counts that are open for known
// reasons. It returns any other error, nil if there is none. If both operands of && or || fail,
// CEL returns only one error; if a count decides, CEL returns no error for single values of the
// count. If the program is true for some values, nothing is hidden. Hidden also evaluates
// variables that ended so, and the last step of a loop.
func (p *Program) Hidden(ctx context.Context, a *Activation, known func(error) bool) error {
	a.ctx, a.exceeded, a.aborted = ctx, false, nil
	w := &a.countRange
	var found error
	holds := false
	look := func() (more bool, stop error) {
		w.begin()
		value, err := a.search(p, known)
		switch {
		case value == types.True:
			holds = true
		case a.final(err):
			return false, err
		case found == nil:
			found = err
		}
		return !holds, nil
	}
	more, stop := look()
	if more {
		w.upper = true
		more, stop = look()
		w.upper = false
	}
	if more && p.monotonicity == unsteady {
		_, stop = w.all(look)
	}
	switch {
	case stop != nil:
		return stop
	case holds:
		return nil
	}
	return found
}

// search evaluates a program in the current world, and returns errors other than the known ones,
// there or in a variable.
func (a *Activation) search(p *Program, known func(error) bool) (ref.Val, error) {
	value, err := a.hidden(p, known)
	if value == types.True || err != nil {
		return value, err
	}
	for i, m := range a.memo {
		if failure, ok := m.value.(*types.Err); ok && known(failure) {
			if _, err := a.hidden(p.scope.variables[i], known); err != nil {
				return value, err
			}
		}
	}
	return value, nil
}

// hidden evaluates one program and records the result of each part.
func (a *Activation) hidden(p *Program, known func(error) bool) (ref.Val, error) {
	prog, err := p.scope.cel.Program(p.ast, append(p.scope.env.programOptions(p.ast), celgo.EvalOptions(celgo.OptTrackState))...)
	if err != nil {
		return nil, &EvalError{Path: p.path, Err: err}
	}
	var details *celgo.EvalDetails
	tracked := *p
	tracked.prog = keeping{prog, &details}
	value, err := a.run(&tracked)
	if err != nil && !a.final(err) && known(err) {
		err = swallowed(celast.NavigateAST(p.ast.NativeRep()), details.State(), known)
	}
	if err != nil {
		err = &EvalError{Path: p.path, Err: err}
	}
	return value, err
}

// keeping is a program that keeps the details of its evaluation.
type keeping struct {
	celgo.Program
	details **celgo.EvalDetails
}

// Eval implements celgo.Program.
func (k keeping) Eval(input any) (value ref.Val, details *celgo.EvalDetails, err error) {
	value, details, err = k.Program.Eval(input)
	*k.details = details
	return value, details, err
}

// swallowed walks down the parts that ended with a known error, to an operand of theirs
// that ended with another.
func swallowed(part celast.NavigableExpr, state interpreter.EvalState, known func(error) bool) error {
	for _, child := range part.Children() {
		value, _ := state.Value(child.ID())
		failure, failed := value.(*types.Err)
		switch {
		case !failed:
			continue
		case !known(failure):
			return failure
		}
		if err := swallowed(child, state, known); err != nil {
			return err
		}
	}
	return nil
}
