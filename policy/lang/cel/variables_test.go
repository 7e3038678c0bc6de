package cel_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

func TestVariablesAreEvaluatedOnce(t *testing.T) {
	tests := []struct {
		reason      string
		expressions []string
		calls       int
	}{
		{"it is not read", []string{"true"}, 0},
		{"it is read thrice", []string{"variables.n + variables.n > 0", "variables.m > 0"}, 1},
		{"a short cut passes it by", []string{"true || variables.n > 0"}, 0},
		{"asking whether it is there does not evaluate it", []string{"has(variables.n)"}, 0},
		{"nor does asking when the type is not known", []string{"has(dyn(variables).n) && !has(dyn(variables).missing)"}, 0},
		{"an error is remembered", []string{"variables.bad == 1 || true", "variables.bad == 1 || true"}, 1},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := newScope(t)
			for _, v := range [][2]string{{"n", "verify('a', [])"}, {"m", "variables.n * 2"}, {"bad", "verify('a', []) + object.missing"}} {
				if err := s.Declare("spec.variables", v[0], v[1]); err != nil {
					t.Fatal(err)
				}
			}
			calls := 0
			in := inputs()
			in.Functions = map[string]cel.Call{"verify": func(context.Context, []ref.Val) (any, error) { calls++; return int64(1), nil }}
			a := s.NewActivation(in)
			for _, expression := range test.expressions {
				if held, err := compile(t, s, expression).Bool(t.Context(), a); !held || err != nil {
					t.Fatal(held, err)
				}
			}
			if calls != test.calls {
				t.Errorf("called %d times, want %d", calls, test.calls)
			}
		})
	}
}

func TestDeclare(t *testing.T) {
	tests := []struct{ reason, name, expression string }{
		{"it reads itself", "a", "variables.a"},
		{"it reads a later one", "a", "variables.z"},
		{"no name", "", "1"},
		{"a name with a dot", "a.b", "1"},
		{"a name that begins with a digit", "1a", "1"},
		{"declared twice", "first", "1"},
		{"it does not compile", "a", "1 +"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := newScope(t)
			if err := s.Declare("spec.variables[0].expression", "first", "1"); err != nil {
				t.Fatal(err)
			}
			err := s.Declare("spec.variables[1].expression", test.name, test.expression)
			if failed, ok := errors.AsType[*cel.CompileError](err); !ok || failed.Path != "spec.variables[1].expression" {
				t.Errorf("got %v", err)
			}
		})
	}
	for name, want := range map[string]bool{
		"_": true, "a": true, "z": true, "A": true, "Z": true, "a0": true, "a9": true, "_aZ_09": true,
		"0": false, "9": false, "`": false, "{": false, "@": false, "[": false, "a/": false, "a:": false, "a-b": false, "é": false, "a b": false,
	} {
		if err := newScope(t).Declare("v", name, "1"); (err == nil) != want {
			t.Errorf("a variable %q: %v", name, err)
		}
	}
	for expression, want := range map[string]bool{
		"{'a': [1]}": true, "[{'a': {1: [2]}}]": true, "{[1]: 'a'}": false, "{{'a': 1}: 'a'}": false, "[{'a': {[1]: 2}}]": false,
	} {
		if err := newScope(t).Declare("v", "a", expression); (err == nil) != want {
			t.Errorf("a variable of %s: %v", expression, err)
		}
	}
	s := newScope(t)
	for i := range 256 {
		if err := s.Declare("v", "v"+string(rune('a'+i%26))+string(rune('a'+i/26)), "1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Declare("v", "more", "1"); err == nil {
		t.Error("there is no bound on variables")
	}
}

func TestVariableHasItsType(t *testing.T) {
	s := newScope(t)
	if err := s.Declare("spec.variables[0].expression", "names", "['a']"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Compile("spec.expression", "variables.names + 1"); err == nil {
		t.Error("a number was added to a list")
	}
}

// TestErrorNamesTheVariable: a run-time error has the name of its variable.
func TestErrorNamesTheVariable(t *testing.T) {
	s := newScope(t)
	if err := s.Declare("spec.variables[0].expression", "v", "object.missing"); err != nil {
		t.Fatal(err)
	}
	_, err := compile(t, s, "variables.v == 1").Bool(t.Context(), s.NewActivation(inputs()))
	if err == nil || err.Error() != "spec.expression: spec.variables[0].expression: no such key: missing" {
		t.Errorf("got %v", err)
	}
}

// TestOpenVariableAfterAKnownOne reads the same variable in expressions that are
// evaluated in different worlds.
func TestOpenVariableAfterAKnownOne(t *testing.T) {
	s := newScope(t)
	if err := s.Declare("spec.variables[0].expression", "open", "verify('0-1', [])"); err != nil {
		t.Fatal(err)
	}
	in := inputs()
	in.Functions = map[string]cel.Call{"verify": counts}
	a := s.NewActivation(in)
	for _, step := range []struct{ expression, want string }{
		{"variables.open >= 0", "true"}, {"variables.open > 0", "unknown"}, {"variables.open < 2", "true"},
		{"variables.open == verify('0-1', [])", "true"}, {"variables.open > 0", "unknown"},
	} {
		value, err := compile(t, s, step.expression).Eval(t.Context(), a)
		if got := outcome(value, err); got != step.want {
			t.Errorf("%s is %s, want %s", step.expression, got, step.want)
		}
	}
}

func TestLazyInputs(t *testing.T) {
	s := newScope(t)
	in := inputs()
	made := 0
	in.Variables["object"] = func() any { made++; return map[string]any{"a": int64(1)} }
	a := s.NewActivation(in)
	if held, err := compile(t, s, "images.size() == 1").Bool(t.Context(), a); !held || err != nil || made != 0 {
		t.Fatal(held, err, made)
	}
	for range 2 {
		if held, err := compile(t, s, "object.a + object.a == 2").Bool(t.Context(), a); !held || err != nil || made != 1 {
			t.Fatal(held, err, made)
		}
	}
}

// TestConcurrentUse shares a scope's programs among goroutines.
func TestConcurrentUse(t *testing.T) {
	s := newScope(t)
	if err := s.Declare("spec.variables[0].expression", "all", "images.containers.map(i, verify(i, [attestors.a]))"); err != nil {
		t.Fatal(err)
	}
	p := compile(t, s, "variables.all.all(e, e > 0) && object.text.matches('a.c') && object.text.replace('a', 'b') == 'bbc'")
	bad := compile(t, s, "math.round(dyn(object.text), 1) > 0.0 || dyn(object.text) + dyn(1) == 'a'")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				a := s.NewActivation(inputs())
				if held, err := p.Bool(context.Background(), a); !held || err != nil {
					t.Error(held, err)
				}
				if _, err := bad.Bool(context.Background(), a); err == nil {
					t.Error("no error")
				}
			}
		})
	}
	group.Wait()
}
