package cel

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/quaymaster/quaymaster/policy/lang/cel/authorizer"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/cost"
)

// Inputs are the values that the expressions of one document read.
type Inputs struct {
	// Variables are the values of declared variables: decoded JSON, which is read in
	// place and must not change meanwhile, ref.Val, or func() any, which is called
	// when the variable is first read. A variable without a value is a run-time error.
	Variables map[string]any
	// More has the values of declared variables that Variables does not have; nil for none.
	More Values
	// Functions are the implementations of the declared functions. Calling a missing one is an
	// *UnknownError.
	Functions map[string]Call
	// Outside answers the libraries that reach outside.
	Outside Outside
	// Namespace is that of the policy, for the resource library of a Namespaced
	// environment.
	Namespace string
	// Now is the clock of time.now, which is read once; nil: calling it is an *UnknownError.
	Now func() time.Time
	// Random is the source of random(); nil: calling it is an *UnknownError.
	Random io.Reader
}

// Values has the values of variables.
type Values interface {
	// Value returns that of a variable, as in Inputs. It is called once.
	Value(variable string) (any, bool)
}

// Activation is one evaluation of a document's expressions: the inputs, and the cached values of
// its variables. It is for one goroutine.
type Activation struct {
	scope  *Scope
	inputs Inputs
	ctx    context.Context // of the evaluation that runs now
	now    time.Time
	found  []found
	few    [4]found
	asked  map[string]answer
	memo   []memo
	// cost is that of the current expression, spent that of all expressions.
	cost, spent uint64
	exceeded    bool
	aborted     error  // the reason for an abort
	step        uint64 // the cost of a step of a loop
	loops       uint
	countRange  countRange
}

// found is the cached value of a requested variable.
type found struct {
	name  string
	value any
}

// memo is the cached result of a variable.
type memo struct {
	value ref.Val
	// countChoice is that in which the value holds; zero is every one.
	countChoice int
}

// NewActivation begins an evaluation.
func (s *Scope) NewActivation(inputs Inputs) *Activation {
	return &Activation{scope: s, inputs: inputs}
}

// Cost is that of all expressions so far, in units of cel-go.
func (a *Activation) Cost() uint64 { return a.spent }

// Names that no expression can write.
const (
	selfName  = "@activation"
	meterName = "@meter"
)

var _ interpreter.Activation = (*Activation)(nil)

// Parent implements the activation of cel-go.
func (a *Activation) Parent() interpreter.Activation { return nil }

// ResolveName implements the activation of cel-go.
func (a *Activation) ResolveName(name string) (any, bool) {
	switch name {
	case selfName:
		return a, true
	case meterName:
		return (*meter)(a), true
	case variablesName:
		return (*variables)(a), true
	}
	for i := range a.found {
		if a.found[i].name == name {
			return a.found[i].value, true
		}
	}
	value, ok := a.inputs.Variables[name]
	if !ok && a.inputs.More != nil {
		value, ok = a.inputs.More.Value(name)
	} else if lazy, isLazy := value.(func() any); isLazy {
		value = lazy()
	}
	if !ok {
		return a.resolveLibrary(name)
	}
	if requester, is := value.(authorizer.Requester); is {
		value = requester.Value(a.review, a.abort)
	}
	if a.found == nil {
		a.found = a.few[:0]
	}
	a.found = append(a.found, found{name, value})
	return value, true
}

// interrupted charges a step of a loop, and reports whether the evaluation has to end.
func (a *Activation) interrupted() bool {
	a.cost += a.step
	if a.cost > cost.MaxCost {
		a.exceeded = true
		return true
	}
	a.loops++
	return a.loops%checkEvery == 0 && a.ctx.Err() != nil
}

// meter is the budget of the calls of an expression.
type meter Activation

var _ cost.Meter = (*meter)(nil)

// Charge implements cost.Meter.
func (a *meter) Charge(added uint64) error {
	a.cost += added
	if a.cost > cost.MaxCost {
		a.exceeded = true
		return &BudgetError{What: "the cost of an expression", Most: cost.MaxCost}
	}
	return a.ctx.Err()
}

// run evaluates once, in the world that is set.
func (a *Activation) run(p *Program) (ref.Val, error) {
	if err := a.ctx.Err(); err != nil {
		return nil, err
	}
	spent, step := a.cost, a.step
	a.cost, a.step = p.step, p.step
	value, _, err := p.prog.Eval(a)
	a.spent += a.cost
	a.cost, a.step = spent, step
	switch ended := a.ctx.Err(); {
	case ended != nil:
		return nil, ended
	case a.aborted != nil:
		return nil, a.aborted
	case a.exceeded:
		return nil, &BudgetError{What: "the cost of an expression", Most: cost.MaxCost}
	case a.spent > maxTotalCost:
		return nil, &BudgetError{What: "the cost of all expressions of a document", Most: maxTotalCost}
	}
	return value, err
}

// final reports whether nothing more can be evaluated.
func (a *Activation) final(err error) bool {
	if err == nil {
		return false
	}
	return a.exceeded || a.aborted != nil || a.spent > maxTotalCost || a.ctx.Err() != nil
}

// review asks for a review of the authorizer.
func (a *Activation) review(review map[string]any) (map[string]any, error) {
	of := ResourceRef{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	answer, err := a.once(authorizer.Name, review, func() (any, error) {
		if a.inputs.Outside.Resources == nil {
			return nil, errNotSupplied(authorizer.Name)
		}
		return a.inputs.Outside.Resources.Post(a.ctx, of, review)
	})
	object, _ := answer.(map[string]any)
	status, ok := object["status"].(map[string]any)
	if err == nil && !ok {
		err = &UnknownError{Gaps: []error{errors.New("a review of access has no status")}}
	}
	return status, err
}

// abort ends the evaluation, by the panic that the library recovers.
func (a *Activation) abort(err error) {
	a.aborted = err
	panic(interpreter.EvalCancelledError{Message: err.Error(), Cause: interpreter.ContextCancelled})
}

// variable evaluates a variable, or returns its cached value.
func (a *Activation) variable(name string) ref.Val {
	i, ok := a.scope.index[name]
	if !ok {
		return types.NewErr("there is no variable %s", name)
	}
	if a.memo == nil {
		a.memo = make([]memo, len(a.scope.variables))
	}
	if m := a.memo[i]; m.value != nil && (m.countChoice == 0 || m.countChoice == a.countRange.current) {
		a.countRange.touched = a.countRange.touched || m.countChoice != 0
		return m.value
	}
	before := a.countRange.touched
	a.countRange.touched = false
	p := a.scope.variables[i]
	value, err := a.run(p)
	if err != nil {
		value = types.WrapErr(&EvalError{Path: p.path, Err: err})
	}
	if a.final(err) {
		return value
	}
	a.memo[i] = memo{value: value}
	if a.countRange.touched {
		a.memo[i].countChoice = a.countRange.current
	}
	a.countRange.touched = a.countRange.touched || before
	return value
}
