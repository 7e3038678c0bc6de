package cel_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// FuzzExpression: for any text, compiling and evaluating neither panics nor
// runs on, and returns the same twice.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		verifyAll, "object.a.b == 1 || request.operation == 'CREATE'", "variables.open > 0 ? [1] : [2]", "[1, 2].map(x, [x].map(y, x + y)).flatten().sum()",
		"json.unmarshal('{}') == yaml.parse('{a: &x [1], b: *x}')", "gzip.compress('a')", "image('a:b@c').tag()", "random('[a-z]{3}')",
		"cel.bind(a, 'x', a + a).replace('', 'y')", "lists.range(10).all(i, 'a'.matches('a' + string(i)))", "optional.of(object).?a.orValue(variables)",
		"'%s %d %.3f'.format(['a', 1, 1.5])", "timestamp('2026-01-01T00:00:00Z') + duration('1h') > time.now()", "type(dyn(attestors.a))",
		"transform.listObjToMap([{'a': 'b'}], [{'c': 1}], 'a', 'c')", "semver('1.2.3') < semver('1.2.4')", "quantity('1').add(quantity('2'))",
		"resource.Get('v1', 'pods', 'a', 'b')", "http.Client('x').Post('y', {'a': 1})", "sets.contains([1], [1, 2])", "{'a': 1}.transformMap(k, v, v + 1)",
	} {
		f.Add(seed)
	}
	env, err := cel.NewEnv(options())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		s := scopeOf(t, env)
		if err := s.Declare("spec.variables[0].expression", "open", "verify('0-1', [])"); err != nil {
			t.Fatal(err)
		}
		p, err := s.Compile("spec.expression", expression)
		if err != nil {
			if _, ok := errors.AsType[*cel.CompileError](err); !ok {
				t.Fatalf("%T is no CompileError", err)
			}
			return
		}
		for _, call := range p.Calls("verify") {
			for _, argument := range call.Arguments {
				argument.Fields("attestors")
			}
		}
		p.Reads()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		in := inputs()
		in.Functions = map[string]cel.Call{"verify": counts}
		_, err = p.Eval(ctx, s.NewActivation(in))
		if _, ok := errors.AsType[*cel.EvalError](err); err != nil && !ok {
			t.Fatalf("%T is no EvalError", err)
		}
		if ctx.Err() != nil {
			t.Fatalf("%q runs on", expression)
		}
	})
}
