package globalcontext_test

import (
	"errors"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestExpressions: expressions in CEL read entries by both spellings, and an unknown
// value is neither true nor false.
func TestExpressions(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{GlobalContext: true})
	if err != nil {
		t.Fatal(err)
	}
	scope, err := env.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := newStore()
	e := entry(t, pods+list)
	put(t, s, e)
	evaluate := func(expression string) (bool, error) {
		program, err := scope.Compile("spec.validations[0].expression", expression, celgo.BoolType)
		if err != nil {
			t.Fatal(err)
		}
		return program.Bool(t.Context(), scope.NewActivation(cel.Inputs{Outside: cel.Outside{GlobalContext: globalcontext.Expressions{Store: s}}}))
	}
	unknown := (*cel.UnknownError)(nil)
	if _, err := evaluate(`globalContext.Get("things", "").size() == 0`); !errors.As(err, &unknown) || !errors.Is(err, globalcontext.ErrNotRead) {
		t.Errorf("before it is read: %v", err)
	}
	if err := s.Answer("things", e.Hash, []any{object("a", 1), object("b", 2)}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		reason, expression string
		want, known        bool
	}{
		{"the objects", `globalContext.Get("things").exists(o, o.metadata.name == "b" && o.spec.replicas + 1 == 3)`, true, true},
		{"the other spelling", `globalContext.get("things").size() == 3`, false, true},
		{"a projection", `"a" in globalContext.Get("things", "names")`, true, true},
		{"a projection without that value", `"c" in globalContext.Get("things", "names")`, false, true},
		{"a projection without a value", `globalContext.Get("things", "none") == null`, false, false},
		{"a projection that is not there", `globalContext.Get("things", "x") == null`, false, false},
		{"an entry that is not there", `globalContext.Get("others", "").size() == 0`, false, false},
	} {
		got, err := evaluate(row.expression)
		if got != row.want || row.known != (err == nil) || err != nil && !errors.As(err, &unknown) {
			t.Errorf("%s: %t, %v", row.reason, got, err)
		}
	}
}
