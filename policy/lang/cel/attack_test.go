package cel_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestRepetitions: a short pattern may compile to a large one. TestCompile has those that are refused.
func TestRepetitions(t *testing.T) {
	s := newScope(t)
	in := inputs()
	in.Variables["object"] = map[string]any{"long": strings.Repeat("a", 40_000), "pattern": strings.Repeat("(a?){750}", 2)}
	for _, c := range []struct{ reason, expression string }{
		{"a constant", "object.long.matches('" + strings.Repeat("(a?){750}", 2) + "b')"},
		{"of the object", "object.long.matches(object.pattern + 'b')"},
		{"that is searched for", "object.long.find('" + strings.Repeat("(a?){750}", 2) + "b') == ''"},
	} {
		began := time.Now()
		_, err := compile(t, s, c.expression).Bool(t.Context(), s.NewActivation(in))
		if _, ok := errors.AsType[*cel.BudgetError](err); !ok {
			t.Errorf("%s: %v after %v", c.reason, err, time.Since(began))
		}
	}
	if held, err := compile(t, s, "'aaaa'.matches('^a{2,4}$')").Bool(t.Context(), s.NewActivation(in)); !held || err != nil {
		t.Errorf("the honest twin: %t %v", held, err)
	}
}

// TestTypesThatDouble: a few names may denote a type that is too large to write out.
func TestTypesThatDouble(t *testing.T) {
	env, err := cel.NewEnv(options())
	if err != nil {
		t.Fatal(err)
	}
	bound := "cel.bind(v0, 1, "
	for i := range 24 {
		bound += fmt.Sprintf("cel.bind(v%d, {v%d: v%d}, ", i+1, i, i)
	}
	bound += "v24 == v24" + strings.Repeat(")", 25)
	began := time.Now()
	_, err = scopeOf(t, env).Compile("a", bound)
	if took := time.Since(began); took > 2*time.Second || err == nil {
		t.Errorf("names: %v after %v", err, took)
	}
	s := scopeOf(t, env)
	began = time.Now()
	err = s.Declare("a", "w0", "1")
	for i := 0; i < 24 && err == nil; i++ {
		err = s.Declare("a", fmt.Sprintf("w%d", i+1), fmt.Sprintf("{variables.w%d: variables.w%d}", i, i))
	}
	if took := time.Since(began); took > 2*time.Second || err == nil {
		t.Errorf("variables: %v after %v", err, took)
	}
}
