package cost

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/partial"
)

// Meter is the budget of an evaluation.
type Meter interface {
	// Charge subtracts a cost, or returns why the evaluation has to stop.
	Charge(cost uint64) error
}

// List prices the functions of an environment. It is immutable.
type List struct {
	bindings map[string]*functions.Overload
	meter    string
}

// New makes the list of an environment. Evaluations supply their Meter as the
// variable of that name; without one they pay nothing, as when constants are
// computed while a program is made.
func New(env *celgo.Env, meter string) (*List, error) {
	l := &List{bindings: map[string]*functions.Overload{}, meter: meter}
	for _, declared := range env.Functions() {
		all, err := declared.Bindings()
		if err != nil {
			return nil, fmt.Errorf("price the functions: %w", err)
		}
		for _, one := range all {
			l.bindings[one.Operator] = one
		}
	}
	return l, nil
}

// Call returns the call with its price, or unchanged if it has only the base cost of its node in
// the expression. An invalid constant regular expression is an error.
func (l *List) Call(call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	price := priceOf(call)
	if price == nil {
		return call, nil
	}
	p := &pricedCall{id: call.ID(), function: call.Function(), arguments: call.Args(), cost: price, meter: l.meter}
	implemented, err := l.implement(p, call.OverloadID())
	if err != nil {
		return nil, err
	}
	if !implemented {
		return call, nil
	}
	return p, nil
}

// pricedCall is a call with a cost that depends on the size of its arguments. It embeds no
// interpretable, so that the library has no method to evaluate the call without its price, and
// it is no interpreter.InterpretableCall, so that no optimizer replaces it.
type pricedCall struct {
	id        int64
	function  string
	arguments []interpreter.InterpretableV2
	cost      cost
	meter     string
	trait     int
	partial   bool // run accepts values with unknown parts
	keeps     bool // run returns parts as they are
	run       functions.FunctionOp
}

// ID implements interpreter.Interpretable.
func (c *pricedCall) ID() int64 { return c.id }

// Eval implements interpreter.Interpretable.
func (c *pricedCall) Eval(vars interpreter.Activation) ref.Val {
	return c.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (c *pricedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var few [3]ref.Val
	arguments := few[:0]
	for _, argument := range c.arguments {
		value := argument.Exec(frame)
		arguments = append(arguments, value)
	}
	for _, value := range arguments {
		if types.IsUnknownOrError(value) {
			return value
		}
	}
	if c.trait != 0 && !arguments[0].Type().HasTrait(c.trait) {
		return types.NewErrWithNodeID(c.id, "no such overload: %s", c.function)
	}
	cost, err := c.cost(arguments)
	if err == nil {
		err = c.charge(frame, cost)
	}
	for i := 0; err == nil && !c.partial && i < len(arguments); i++ {
		err = c.unknown(arguments[i]) // after the charge, which covers this walk
	}
	if err != nil {
		return types.WrapErr(err)
	}
	value := c.run(arguments...)
	if err := c.charge(frame, shallow(value)); err != nil {
		return types.WrapErr(err)
	}
	return types.LabelErrNode(c.id, value)
}

// unknown returns why an argument is unknown, as far as the function depends on it.
func (c *pricedCall) unknown(argument ref.Val) error {
	if c.keeps {
		return partial.UnknownMembers(argument)
	}
	return partial.Unknown(argument)
}

// charge takes the cost off the meter. Small costs are covered by the surrounding loop.
func (c *pricedCall) charge(vars interpreter.Activation, cost uint64) error {
	if cost < cheap {
		return nil
	}
	found, _ := vars.ResolveName(c.meter)
	meter, ok := found.(Meter)
	if !ok {
		return nil
	}
	return meter.Charge(cost)
}

// implement finds the implementation of a call.
func (l *List) implement(c *pricedCall, overload string) (bool, error) {
	switch c.function {
	case operators.Equals:
		c.partial, c.run = true, func(v ...ref.Val) ref.Val { return partial.Equal(v[0], v[1]) }
		return true, nil
	case operators.NotEquals:
		c.partial, c.run = true, func(v ...ref.Val) ref.Val { return partial.NotEqual(v[0], v[1]) }
		return true, nil
	case operators.In:
		c.partial, c.run = true, func(v ...ref.Val) ref.Val { return partial.Contains(v[1], v[0]) }
		return true, nil
	case "optional.of", "optional.ofNonZeroValue", "value", "hasValue", "first", "last", "reverse", "slice", "flatten":
		c.keeps = true
	case "max":
		c.run = func(v ...ref.Val) ref.Val { return partial.Greatest(v[0]) }
		return true, nil
	case "min":
		c.run = func(v ...ref.Val) ref.Val { return partial.Least(v[0]) }
		return true, nil
	case "isSorted":
		c.run = func(v ...ref.Val) ref.Val { return partial.IsSorted(v[0]) }
		return true, nil
	case operators.Add, "join":
		c.partial = true // a list keeps its parts as they are, and only texts are joined
	case overloads.Matches, findName, findAllName, extractName, extractAllName, replaceName:
		run, err := runOf(c.function, c.arguments)
		if err != nil || run != nil {
			c.run = run
			return run != nil, err
		}
	}
	bound, ok := l.bindings[overload]
	if !ok {
		bound, ok = l.bindings[c.function]
	}
	if !ok || bound.NonStrict {
		return false, nil
	}
	c.trait = bound.OperandTrait
	switch arity := len(c.arguments); {
	case arity == 1 && bound.Unary != nil:
		c.run = func(v ...ref.Val) ref.Val { return bound.Unary(v[0]) }
	case arity == 2 && bound.Binary != nil:
		c.run = func(v ...ref.Val) ref.Val { return bound.Binary(v[0], v[1]) }
	default:
		c.run = bound.Function // nil where there is none
	}
	if run := c.run; run != nil && (c.function == "sort" || c.function == "@sortByAssociatedKeys") {
		c.run = func(v ...ref.Val) ref.Val {
			if err := partial.Sortable(v[len(v)-1]); err != nil {
				return err
			}
			return run(v...)
		}
	}
	return c.run != nil, nil
}
