package logic_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/policy/internal/logic"
)

func Example() {
	labels := logic.Indeterminate(errors.New("the namespace's labels are not known"))
	excluded := logic.All(
		func() logic.Value { return logic.Is(true) },
		func() logic.Value { return labels },
	)
	fmt.Println(excluded.True(), excluded.False(), excluded.Cause())
	// Output: false false the namespace's labels are not known
}

// TestTables compares the connectives with the truth tables of strong Kleene logic.
func TestTables(t *testing.T) {
	f, u, y := logic.Is(false), logic.Indeterminate(errors.New("unknown")), logic.Is(true)
	for _, row := range []struct {
		a, b, all, anyOf logic.Value
		reason           string
	}{
		{f, f, f, f, "both false"},
		{f, u, f, u, "a false part decides a conjunction"},
		{f, y, f, y, "one of each"},
		{u, f, f, u, "the order of parts does not matter"},
		{u, u, u, u, "nothing is known"},
		{u, y, u, y, "a true part decides a disjunction"},
		{y, f, f, y, "one of each"},
		{y, u, u, y, "the order of parts does not matter"},
		{y, y, y, y, "both true"},
	} {
		pair := []logic.Value{row.a, row.b}
		same := func(v logic.Value) logic.Value { return v }
		if got := logic.All(func() logic.Value { return row.a }, func() logic.Value { return row.b }); name(got) != name(row.all) {
			t.Errorf("All(%s, %s) = %s, want %s: %s", name(row.a), name(row.b), name(got), name(row.all), row.reason)
		}
		if got := logic.Any(pair, same); name(got) != name(row.anyOf) {
			t.Errorf("Any(%s, %s) = %s, want %s: %s", name(row.a), name(row.b), name(got), name(row.anyOf), row.reason)
		}
		if got := logic.Every(pair, same); name(got) != name(row.all) {
			t.Errorf("Every(%s, %s) = %s, want %s: %s", name(row.a), name(row.b), name(got), name(row.all), row.reason)
		}
	}
	for v, want := range map[logic.Value]string{f: "true", u: "indeterminate", y: "false"} {
		if got := name(v.Not()); got != want {
			t.Errorf("Not(%s) = %s, want %s", name(v), got, want)
		}
	}
	none := func(logic.Value) logic.Value { return y }
	if !logic.All().True() || !logic.Any(nil, none).False() || !logic.Every(nil, none).True() {
		t.Error("the empty conjunction is true and the empty disjunction is false")
	}
}

// TestIndeterminate: a missing cause does not turn into false.
func TestIndeterminate(t *testing.T) {
	if v := logic.Indeterminate(nil); v.True() || v.False() || v.Cause() == nil {
		t.Errorf("Indeterminate(nil) = %s", name(v))
	}
	if holds, err := logic.Is(true).Result(); !holds || err != nil {
		t.Errorf("Result of true = %v, %v", holds, err)
	}
	if holds, err := logic.Indeterminate(errors.New("x")).Result(); holds || err == nil {
		t.Errorf("Result of indeterminate = %v, %v", holds, err)
	}
}

func name(v logic.Value) string {
	switch {
	case v.True():
		return "true"
	case v.False():
		return "false"
	}
	return "indeterminate"
}
