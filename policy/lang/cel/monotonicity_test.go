package cel

import (
	"context"
	"math/rand/v2"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

func TestTrend(t *testing.T) {
	tests := []struct {
		expression string
		want       monotonicity
	}{
		{"n('a') > 0", rising}, {"0 < n('a')", rising}, {"n('a') < 2", falling}, {"2 >= n('a')", falling}, {"!(n('a') > 0)", falling},
		{"object.a == 1", steady}, {"n('a') == 1", unsteady}, {"n('a') > n('b')", unsteady}, {"n('a') > 0 && n('b') > 0", rising},
		{"n('a') > 0 || n('b') < 1", unsteady}, {"object.a ? n('a') > 0 : n('b') > 1", rising}, {"n('a') > 0 ? true : false", unsteady},
		{"object.l.map(i, n(i)).all(e, e > 0)", rising}, {"object.l.all(i, n(i) > 0)", rising}, {"object.l.exists(i, n(i) < 1)", falling},
		{"object.l.map(i, n(i)).sum() > 3", rising}, {"object.l.exists_one(i, n(i) > 0)", unsteady}, {"object.l.filter(i, n(i) > 0).size() > 0", unsteady},
		{"variables.rising", rising}, {"variables.steady && object.a", steady}, {"!variables.rising", falling}, {"has(variables.rising)", steady},
		{"variables.list.all(e, e > 0)", rising}, {"dyn(variables) == 1", unsteady}, {"n(string(n('a'))) > 0", unsteady}, {"n('a') - 1 > 0", rising}, {"1 - n('a') > 0", falling},
		{"[n('a')].all(i, e, e > 0)", unsteady}, {"cel.bind(x, n('a'), x > 0)", rising}, {"random() == 'a'", unsteady}, {"{'a': n('a')}.a > 0", unsteady}, {"size(object.l) > 0", steady},
		{"cel.bind(x, {'z': n('a')}, x.z > 0)", unsteady}, {"cel.bind(x, {'z': 1}, x.z > 0)", steady}, {"cel.bind(variables, {'z': n('a')}, variables.z > 0)", unsteady},
		{"random() > 'a'", unsteady}, {"time.now() > timestamp('2026-03-04T05:06:07Z')", unsteady}, {"object.t > 'a'", steady},
		{"object.l.map(i, n(i)).filter(e, object.a).sum() > 0", rising}, {"object.l.map(i, n(i)).filter(e, e > 0).sum() > 0", unsteady},
	}
	s := trendScope(t)
	for _, test := range tests {
		p, err := s.Compile("e", test.expression)
		if err != nil {
			t.Fatal(err)
		}
		if p.monotonicity != test.want {
			t.Errorf("%s goes %d, want %d", test.expression, p.monotonicity, test.want)
		}
	}
}

// TestTrendOfAllVariables: an expression that reads them as a whole has no known direction, unless
// each of them is the same for any count.
func TestTrendOfAllVariables(t *testing.T) {
	for _, c := range []struct {
		reason   string
		declared []string
		want     monotonicity
	}{
		{"none", nil, steady},
		{"one that counts nothing", []string{"object.a"}, steady},
		{"one that counts", []string{"n('v')"}, unsteady},
		{"one of both", []string{"object.a", "n('v')"}, unsteady},
	} {
		s := emptyTrendScope(t)
		for i, expression := range c.declared {
			if err := s.Declare("v", string(rune('a'+i)), expression); err != nil {
				t.Fatal(err)
			}
		}
		p, err := s.Compile("e", "dyn(variables) == 1")
		if err != nil {
			t.Fatal(err)
		}
		if p.monotonicity != c.want {
			t.Errorf("%s: goes %d, want %d", c.reason, p.monotonicity, c.want)
		}
	}
}

// TestTrendOfLoops: a loop goes one way where each step does, and where it ends early only
// when nothing more can change; whatever macros another version of the language has.
func TestTrendOfLoops(t *testing.T) {
	parts := ast.NewExprFactory()
	name := func(n string) ast.Expr { return parts.NewIdent(0, n) }
	call := func(function string, arguments ...ast.Expr) ast.Expr { return parts.NewCall(0, function, arguments...) }
	not := func(e ast.Expr) ast.Expr { return call(operators.LogicalNot, e) }
	goOn := func(e ast.Expr) ast.Expr { return call(operators.NotStrictlyFalse, e) }
	yes, one := parts.NewLiteral(0, types.True), parts.NewLiteral(0, types.IntOne)
	x, acc, counted := name("x"), name("acc"), call("n", parts.NewLiteral(0, types.String("a")))
	above := call(operators.Greater, x, one)
	and, or, sum := call(operators.LogicalAnd, acc, above), call(operators.LogicalOr, acc, above), call(operators.Add, acc, x)
	for _, c := range []struct {
		reason                  string
		start, goes, step, gets ast.Expr
		want                    monotonicity
	}{
		{"all of them", yes, goOn(acc), and, acc, rising},
		{"all of them, and it ends at one that is", yes, goOn(not(acc)), and, acc, unsteady},
		{"all of them, and it ends at an item", yes, goOn(x), and, acc, unsteady},
		{"all of them, and it ends by something else", yes, goOn(above), and, acc, unsteady},
		{"all of them, and it ends at an error, too", yes, acc, and, acc, unsteady},
		{"all of them, and it ends at one that is, written in another form", yes, not(acc), and, acc, unsteady},
		{"all of them to the end", yes, yes, and, acc, rising},
		{"one of them", yes, goOn(not(acc)), or, acc, rising},
		{"one of them, and it ends at one that is not", yes, goOn(acc), or, acc, unsteady},
		{"one of them, and it ends at an item", yes, goOn(not(x)), or, acc, unsteady},
		{"one of them, and it ends otherwise", yes, goOn(call(operators.Negate, acc)), or, acc, unsteady},
		{"the last of them, and it ends early", yes, goOn(acc), call(operators.LogicalAnd, above, above), acc, unsteady},
		{"the last of them to the end", yes, yes, x, acc, rising},
		{"the sum", one, yes, sum, acc, rising},
		{"the sum, and it ends at some height", one, call(operators.Less, acc, one), sum, acc, unsteady},
		{"the sum, and it ends by itself", one, goOn(acc), sum, acc, unsteady},
		{"one less each of them", one, yes, call(operators.Subtract, acc, x), acc, falling},
		{"each of them less the one before", one, yes, call(operators.Subtract, x, acc), acc, unsteady},
		{"each of them and not the one before", yes, yes, call(operators.LogicalAnd, above, not(acc)), acc, unsteady},
		{"the value before any", counted, yes, one, acc, rising},
		{"one way and the other, which is not used", counted, yes, call(operators.Subtract, one, counted), one, steady},
		{"one way and the other", counted, yes, call(operators.Subtract, one, counted), acc, unsteady},
	} {
		items := parts.NewList(0, []ast.Expr{counted}, nil)
		loop := parts.NewComprehension(0, items, "x", "acc", c.start, c.goes, c.step, c.gets)
		if got := trendScope(t).trendOf(loop); got != c.want {
			t.Errorf("%s: goes %d, want %d", c.reason, got, c.want)
		}
	}
}

func trendScope(t *testing.T) *Scope {
	t.Helper()
	s := emptyTrendScope(t)
	for _, v := range [][2]string{{"rising", "n('v') > 0"}, {"steady", "object.a"}, {"list", "object.l.map(i, n(i))"}} {
		if err := s.Declare("v", v[0], v[1]); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func emptyTrendScope(t *testing.T) *Scope {
	t.Helper()
	e, err := NewEnv(Options{
		Variables: []Variable{{Name: "object", Type: celgo.DynType}},
		Functions: []Function{{Name: "n", Overloads: []Overload{{ID: "n_string", Arguments: []*celgo.Type{celgo.StringType}, Result: celgo.IntType}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTrendAgreesWithEveryWorld generates expressions, and compares the results by
// monotonicity with the results over every combination of counts.
func TestTrendAgreesWithEveryWorld(t *testing.T) {
	s := trendScope(t)
	random := rand.New(rand.NewPCG(1, 2))
	in := Inputs{
		Variables: map[string]any{"object": map[string]any{"a": true, "l": []any{"a", "b"}}},
		Functions: map[string]Call{"n": func(context.Context, []ref.Val) (any, error) {
			return Count{Lower: 0, Upper: 2, Gaps: []error{context.DeadlineExceeded}}, nil
		}},
	}
	shortened := 0
	for range 1000 {
		expression := makeUp(random, 4)
		p, err := s.Compile("e", expression)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		if p.monotonicity == unsteady {
			continue
		}
		short, shortErr := p.Eval(t.Context(), s.NewActivation(in))
		every := *p
		every.monotonicity = unsteady
		full, fullErr := every.Eval(t.Context(), s.NewActivation(in))
		if !agree(short, shortErr, full, fullErr) {
			t.Errorf("%s: %v, %v by its ends; %v, %v in every world", expression, short, shortErr, full, fullErr)
		}
		shortened++
	}
	if shortened < 100 {
		t.Errorf("only %d expressions go one way", shortened)
	}
}

// makeUp writes a bool expression over at most four counts.
func makeUp(random *rand.Rand, depth int) string {
	pick := func(all ...string) string { return all[random.IntN(len(all))] }
	if depth == 0 {
		return pick("n('a')", "n('b')", "n('c')", "1", "2", "variables.list.sum()") + pick(" > ", " < ", " >= ", " <= ") + pick("0", "1", "n('a')", "n('b')", "n('c') + 1", "object.missing")
	}
	part := func() string { return "(" + makeUp(random, random.IntN(depth)) + ")" }
	switch random.IntN(8) {
	case 0, 1:
		return part() + " && " + part()
	case 2, 3:
		return part() + " || " + part()
	case 4:
		return "!" + part()
	case 5:
		return pick("object.a", "object.missing", part()) + " ? " + part() + " : " + part()
	case 6:
		return "object.l." + pick("all", "exists", "exists_one") + "(i, n(i) > " + pick("0", "1") + pick(" && ", " || ") + part() + ")"
	default:
		return pick("variables.list", "[n('a'), 1]", "object.l.map(i, n(i) + 1)") + pick(".all", ".exists") + "(e, e " + pick("> ", "< ", "== ") + pick("0", "1", "n('b')") + ")"
	}
}
