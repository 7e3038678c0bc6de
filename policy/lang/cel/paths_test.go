package cel

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/cost"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/partial"
)

var errGap = errors.New("a member could not be read")

// partly is an object with one known member, and others that are unknown.
type partly struct{}

func (partly) Member(name string) (any, bool)   { return true, name == "known" }
func (partly) Unknown(string) error             { return errGap }
func (partly) Members() (map[string]any, error) { return nil, errGap }

// positions are the places of an operand in a program. The library evaluates some of them by
// Eval, and some by Exec.
var positions = []struct{ reason, expression string }{
	{"the whole", "X"},
	{"an operand", "X && X"},
	{"a negation", "!(!(X))"},
	{"a condition", "(X) ? true : false"},
	{"a branch", "object.known ? (X) : false"},
	{"the other branch", "!object.known ? false : (X)"},
	{"an element of a list", "[X][0]"},
	{"a value of a map", "{'a': X}.a"},
	{"a key of a map", "{X: true}[true]"},
	{"an index", "{true: true}[X]"},
	{"a variable", "cel.bind(x, X, x && x)"},
	{"a range", "[X].all(x, x)"},
	{"a step", "[1].all(x, X)"},
	{"a step over two variables", "[1].all(i, x, X)"},
	{"a step of a map", "[1].map(x, X)[0]"},
	{"a filter", "[1].filter(x, X).size() == 1"},
	{"an argument", "string(X) == 'true'"},
	{"an optional", "optional.of(X).orValue(false)"},
	{"the value instead of an optional", "optional.none().orValue(X)"},
	{"an optional index", "[X][?0].orValue(false)"},
}

// evaluations are the entries of the library.
func evaluations(t *testing.T, s *Scope, p *Program) map[string]func(*Activation) (ref.Val, error) {
	t.Helper()
	with := func(option celgo.EvalOption) celgo.Program {
		program, err := s.cel.Program(p.ast, append(s.env.programOptions(p.ast), celgo.EvalOptions(option))...)
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	eval := func(program celgo.Program) func(*Activation) (ref.Val, error) {
		return func(a *Activation) (ref.Val, error) {
			value, _, err := program.Eval(a)
			return value, err
		}
	}
	return map[string]func(*Activation) (ref.Val, error){
		"Eval": eval(p.prog), "OptTrackState": eval(with(celgo.OptTrackState)), "OptExhaustiveEval": eval(with(celgo.OptExhaustiveEval)),
		"OptTrackCost": eval(with(celgo.OptTrackCost)), "OptPartialEval": eval(with(celgo.OptPartialEval)),
		"ContextEval": func(a *Activation) (ref.Val, error) {
			value, _, err := p.prog.ContextEval(t.Context(), a)
			return value, err
		},
		"ConcurrentEval": func(a *Activation) (ref.Val, error) {
			result := <-p.prog.ConcurrentEval(t.Context(), a)
			return result.Val, result.Err
		},
	}
}

// TestEveryEvaluation: no way to evaluate an operand, in no position, leaves out its price, the
// function of the activation, the unknown members of a range or the steps of a loop.
func TestEveryEvaluation(t *testing.T) {
	const texts, items = 1 << 10, 50
	s := trendScope(t)
	for _, c := range []struct {
		reason, operand string
		fails           bool
		least           func(*Program) uint64
	}{
		{"a priced call", "object.text == object.text", false, func(*Program) uint64 { return texts }},
		{"a call of the activation", "n('a') == 1", false, nil},
		{"a range with unknown members", "object.partial.all(k, true)", true, nil},
		{"a range with unknown members, and two variables", "object.partial.all(k, v, true)", true, nil},
		{"a range by a computed name", "object['part' + 'ial'].all(k, true)", true, nil},
		{"a range by a computed name, without unknown members", "object['it' + 'ems'].all(i, object.known)", false, func(p *Program) uint64 { return items * p.step }},
		{"a loop", "object.items.all(i, object.known)", false, func(p *Program) uint64 { return items * p.step }},
		{"a loop that makes a list", "size(object.items.map(i, object.known, i)) > 0", false, func(p *Program) uint64 { return items * p.step }},
		{"a loop over two variables", "object.items.all(i, j, object.known)", false, func(p *Program) uint64 { return items * p.step }},
		{"a loop that makes a map", "size(object.items.transformMap(i, j, object.known)) > 0", false, func(p *Program) uint64 { return items * p.step }},
		{"a loop that counts", "!object.items.exists_one(i, object.known)", false, func(p *Program) uint64 { return items * p.step }},
	} {
		for _, position := range positions {
			p, err := s.Compile("e", strings.ReplaceAll(position.expression, "X", c.operand))
			if err != nil {
				t.Fatalf("%s as %s: %v", c.reason, position.reason, err)
			}
			for name, evaluate := range evaluations(t, s, p) {
				calls := 0
				a := s.NewActivation(Inputs{
					Variables: map[string]any{"object": map[string]any{
						"known": true, "text": strings.Repeat("x", texts*16), "items": make([]any, items), "partial": Partial(partly{}),
					}},
					Functions: map[string]Call{"n": func(context.Context, []ref.Val) (any, error) { calls++; return int64(1), nil }},
				})
				a.ctx, a.step = t.Context(), p.step
				value, err := evaluate(a)
				switch {
				case c.fails && !errors.Is(err, errGap):
					t.Errorf("%s as %s by %s: %v %v", c.reason, position.reason, name, value, err)
				case !c.fails && (err != nil || value != types.True):
					t.Errorf("%s as %s by %s: %v %v", c.reason, position.reason, name, value, err)
				case strings.Contains(c.operand, "n(") && calls == 0:
					t.Errorf("%s as %s by %s: the function is not called", c.reason, position.reason, name)
				case c.least != nil && a.cost < c.least(p):
					t.Errorf("%s as %s by %s costs %d, want %d", c.reason, position.reason, name, a.cost, c.least(p))
				}
			}
		}
	}
}

// TestStoppedEvaluation: a loop ends where the budget does, however it is evaluated.
func TestStoppedEvaluation(t *testing.T) {
	s := trendScope(t)
	for _, position := range positions {
		p, err := s.Compile("e", strings.ReplaceAll(position.expression, "X", "object.items.all(i, object.known)"))
		if err != nil {
			t.Fatal(err)
		}
		for name, evaluate := range evaluations(t, s, p) {
			a := s.NewActivation(Inputs{Variables: map[string]any{"object": map[string]any{"known": true, "items": make([]any, 1000)}}})
			a.ctx, a.step, a.cost = t.Context(), p.step, cost.MaxCost-10*p.step
			if value, err := evaluate(a); err == nil || !a.exceeded || a.cost > cost.MaxCost+p.step {
				t.Errorf("%s by %s: %v %v, at a cost of %d", position.reason, name, value, err, a.cost)
			}
		}
	}
}

// fixed is a part of a program that has a value.
type fixed struct{ value ref.Val }

func (f fixed) ID() int64                                { return 7 }
func (f fixed) Eval(interpreter.Activation) ref.Val      { return f.value }
func (f fixed) Exec(*interpreter.ExecutionFrame) ref.Val { return f.value }
func (f fixed) Function() string                         { return "_==_" }
func (f fixed) OverloadID() string                       { return "equals" }
func (f fixed) Args() []interpreter.InterpretableV2      { return []interpreter.InterpretableV2{f, f} }

// TestDecoratorsHaveEveryMethod: a decorator that embedded the part it decorates would have the
// part's methods, and the library would find them first.
func TestDecoratorsHaveEveryMethod(t *testing.T) {
	s := trendScope(t)
	priced, err := s.env.prices.Call(fixed{types.String(strings.Repeat("x", 1<<16))})
	if err != nil {
		t.Fatal(err)
	}
	late := &lateCall{id: 7, function: "n", overloads: []Overload{{Arguments: []*celgo.Type{celgo.StringType}}}, arguments: []interpreter.InterpretableV2{fixed{types.String("a")}}}
	for _, c := range []struct {
		reason string
		part   interpreter.InterpretableV2
		held   func(*Activation, ref.Val) bool
	}{
		{"a priced call", priced, func(a *Activation, value ref.Val) bool { return value == types.True && a.cost >= 1<<12 }},
		{"a call of the activation", late, func(_ *Activation, value ref.Val) bool { return value == types.Int(1) }},
		{"a range", partial.Known(fixed{Partial(partly{})}), func(_ *Activation, value ref.Val) bool { return types.IsError(value) }},
		{"a step", loopStep{fixed{types.True}}, func(a *Activation, value ref.Val) bool { return value == types.True && a.cost == 1 }},
	} {
		for name, evaluate := range map[string]func(interpreter.Activation) ref.Val{
			"Eval": c.part.Eval,
			"Exec": func(vars interpreter.Activation) ref.Val { return c.part.Exec(interpreter.AsFrame(vars)) },
		} {
			a := s.NewActivation(Inputs{Functions: map[string]Call{"n": func(context.Context, []ref.Val) (any, error) { return int64(1), nil }}})
			a.ctx, a.step = t.Context(), 1
			if value := evaluate(a); !c.held(a, value) {
				t.Errorf("%s by %s: %v, at a cost of %d", c.reason, name, value, a.cost)
			}
		}
		if id := c.part.ID(); id != 7 {
			t.Errorf("%s is of the part %d", c.reason, id)
		}
		is := reflect.Indirect(reflect.ValueOf(c.part)).Type()
		for i := range is.NumField() {
			if is.Field(i).Anonymous {
				t.Errorf("%s embeds %s", is, is.Field(i).Type)
			}
		}
	}
}

// TestStepWithoutAnActivation: a step that nothing can be charged for is an error.
func TestStepWithoutAnActivation(t *testing.T) {
	if value := (loopStep{fixed{types.True}}).Eval(interpreter.EmptyActivation()); !types.IsError(value) {
		t.Errorf("the value is %v", value)
	}
}
