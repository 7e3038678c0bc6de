package operation_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/operation"
)

// budget is all that a patch may write.
func budget() *jsonvalue.Budget {
	all := jsonvalue.Budget(jsonvalue.MaxAdded)
	return &all
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		pointer string
		want    []string // nil: refused
		reason  string
	}{
		{"/a", []string{"a"}, "a name"},
		{"/", []string{""}, "an empty name"},
		{"/a~1b/~0/~01", []string{"a/b", "~", "~1"}, "escapes"},
		{"", nil, "the whole"},
		{"a", nil, "no slash"},
		{"/~", nil, "half an escape"},
		{"/~2", nil, "no escape"},
	} {
		got, err := operation.Tokens(c.pointer)
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) {
			t.Errorf("%s: %q, %v: %s", c.pointer, got, err, c.reason)
		}
		if err == nil && operation.Pointer(got) != c.pointer {
			t.Errorf("%s became %s", c.pointer, operation.Pointer(got))
		}
	}
	if _, err := operation.Tokens(""); !errors.Is(err, operation.ErrWhole) {
		t.Errorf("%v", err)
	}
}

// TestBounds has the longest pointers and the deepest values.
func TestBounds(t *testing.T) {
	for parts, fits := range map[int]bool{200: true, 201: false} {
		if _, err := operation.Tokens(strings.Repeat("/a", parts)); fits != (err == nil) || err != nil && !errors.Is(err, jsonvalue.ErrTooLarge) {
			t.Errorf("a pointer of %d parts: %v", parts, err)
		}
	}
	for depth, fits := range map[int]bool{199: true, 200: false} {
		value := any("x")
		for range depth {
			value = []any{value}
		}
		for _, op := range []string{"add", "replace", "copy", "move"} {
			step := operation.Step{Op: op, Path: []string{"a"}, From: []string{"from"}, Value: value}
			_, _, err := operation.Run([]operation.Step{step}, map[string]any{"a": 1.0, "from": value}, budget())
			if fits != (err == nil) || err != nil && !errors.Is(err, jsonvalue.ErrTooLarge) {
				t.Errorf("%s of %d lists in one another: %v", op, depth, err)
			}
		}
	}
}

// TestDiffBounds has how many operations there may be, and how long the lists that are
// aligned.
func TestDiffBounds(t *testing.T) {
	members := func(n int, value string) map[string]any {
		inner := map[string]any{}
		for i := range n {
			inner[strconv.Itoa(i)] = value
		}
		return map[string]any{"a": inner}
	}
	shifted := func(n, by int) map[string]any {
		list := make([]any, n)
		for i := range list {
			list[i] = strconv.Itoa(i + by)
		}
		return map[string]any{"a": list}
	}
	for _, c := range []struct {
		before, after map[string]any
		want          int
		reason        string
	}{
		{members(10_000, "x"), members(10_000, "y"), 10_000, "as many as may be"},
		{members(10_001, "x"), members(10_001, "y"), 1, "one more: the field is replaced"},
		{shifted(200, 0), shifted(200, 1), 2, "aligned: one is added, and one removed"},
		{shifted(201, 0), shifted(200, 2), 201, "longer: index by index"},
		{map[string]any{"a": map[string]any(nil)}, map[string]any{"a": 1.0}, 1, "an object that is nil is no number"},
		{map[string]any{"a": []any(nil)}, map[string]any{"a": 1.0}, 1, "nor is a list"},
	} {
		if operations := operation.Diff(c.before, c.after); len(operations) != c.want {
			t.Errorf("%s: %d operations, want %d", c.reason, len(operations), c.want)
		}
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("/a~1b/0/-")
	f.Fuzz(func(t *testing.T, s string) {
		if tokens, err := operation.Tokens(s); err == nil && operation.Pointer(tokens) != s {
			t.Errorf("%q became %q", s, operation.Pointer(tokens))
		}
	})
}

func Example() {
	object := map[string]any{"spec": map[string]any{}}
	changed, _, err := operation.Run([]operation.Step{{Op: "add", Path: []string{"spec", "hosts", "-"}, Value: "a"}}, object, budget())
	fmt.Println(changed, object, err)
	// Output: map[spec:map[hosts:[a]]] map[spec:map[]] <nil>
}
