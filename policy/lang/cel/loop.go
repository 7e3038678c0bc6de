package cel

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/fieldcheck"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/partial"
)

// loops are the parts of the comprehensions in an expression, by their number.
type loops struct {
	ranges map[int64]bool // a range that is written as a list or a map is known, and not among them
	steps  map[int64]bool
}

// add adds the comprehensions in an expression.
func (l loops) add(e ast.Expr) {
	if e.Kind() == ast.ComprehensionKind {
		loop := e.AsComprehension()
		l.steps[loop.LoopStep().ID()] = true
		switch over := loop.IterRange(); over.Kind() {
		case ast.ListKind, ast.MapKind, ast.LiteralKind:
		default:
			l.ranges[over.ID()] = true
		}
	}
	for _, part := range fieldcheck.Parts(e) {
		l.add(part)
	}
}

// decorate replaces the ranges and the steps of loops.
func (l loops) decorate(i interpreter.InterpretableV2) interpreter.InterpretableV2 {
	id := i.ID()
	if l.ranges[id] {
		i = partial.Known(i)
	}
	if l.steps[id] {
		i = loopStep{i}
	}
	return i
}

// loopStep is the step of a loop, which is paid for each time.
type loopStep struct{ step interpreter.InterpretableV2 }

// ID implements interpreter.Interpretable.
func (l loopStep) ID() int64 { return l.step.ID() }

// Eval implements interpreter.Interpretable.
func (l loopStep) Eval(vars interpreter.Activation) ref.Val {
	return l.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2. The library ends an evaluation by this panic,
// and recovers it: an error would end one step, and the loop would go on.
func (l loopStep) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	value := l.step.Exec(frame)
	a, ok := activationOf(frame)
	if !ok {
		return types.NewErr("a loop runs without an activation")
	}
	if a.interrupted() {
		panic(interpreter.EvalCancelledError{Message: "operation interrupted", Cause: interpreter.CostLimitExceeded})
	}
	return value
}
