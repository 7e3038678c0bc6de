package operation_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/policy/patch/internal/operation"
)

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
	changed, _, err := operation.Run([]operation.Step{{Op: "add", Path: []string{"spec", "hosts", "-"}, Value: "a"}}, object)
	fmt.Println(changed, object, err)
	// Output: map[spec:map[hosts:[a]]] map[spec:map[]] <nil>
}
