package jsonvalue_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
)

func TestEqual(t *testing.T) {
	values := []any{
		nil, true, false, 0.0, 1.0, "", "1", []any{}, []any{1.0}, []any{1.0, 2.0}, []any{nil}, map[string]any{}, map[string]any{"a": 1.0},
		map[string]any{"a": nil}, map[string]any{"b": nil}, map[string]any{"a": []any{map[string]any{}}},
	}
	for _, a := range values {
		for _, b := range values {
			if got, want := jsonvalue.Equal(a, b), reflect.DeepEqual(a, b); got != want {
				t.Errorf("%v and %v: %v, want %v", a, b, got, want)
			}
		}
	}
	object := map[string]any{"a": []any{1.0}}
	if copied := map[string]any{"a": object["a"]}; jsonvalue.SameObject(object, copied) || !jsonvalue.Equal(object, copied) {
		t.Error("a copy is equal and not the same")
	}
	if !jsonvalue.SameObject(object, object) {
		t.Error("an object is itself")
	}
	list := []any{1.0, 2.0}
	for _, row := range []struct {
		other  []any
		same   bool
		reason string
	}{
		{list, true, "a list is itself"}, {[]any{1.0, 2.0}, false, "a copy is another"}, {list[:1], false, "its beginning is another"},
		{[]any{2.0, 1.0}, false, "other elements"},
	} {
		if jsonvalue.SameList(list, row.other) != row.same {
			t.Errorf("%s: same %v", row.reason, !row.same)
		}
	}
}

func TestShow(t *testing.T) {
	for _, row := range []struct {
		length int
		want   string
		reason string
	}{
		{200, strings.Repeat("x", 200), "at the bound it is whole"},
		{201, strings.Repeat("x", 200) + "...", "over it the rest is left out"},
	} {
		if got := jsonvalue.Show(strings.Repeat("x", row.length)); got != row.want {
			t.Errorf("%s: %d bytes", row.reason, len(got))
		}
	}
	if got := jsonvalue.Show("x" + strings.Repeat("ü", 100)); got != "x"+strings.Repeat("ü", 99)+"..." {
		t.Errorf("a character is cut: %q", got)
	}
}

func TestAllowance(t *testing.T) {
	deep := any("x")
	for range jsonvalue.MaxDepth {
		deep = []any{deep}
	}
	for _, c := range []struct {
		value  any
		depth  int
		fits   bool
		reason string
	}{
		{"x", 0, true, "a string"},
		{strings.Repeat("x", jsonvalue.MaxAdded-jsonvalue.Cost), 0, true, "at the bound"},
		{strings.Repeat("x", jsonvalue.MaxAdded), 0, false, "over the bound"},
		{map[string]any{strings.Repeat("x", jsonvalue.MaxAdded): nil}, 0, false, "a long name"},
		{deep, 0, true, "deep"},
		{deep, 1, false, "too deep where it is written"},
	} {
		left := jsonvalue.Budget(jsonvalue.MaxAdded)
		if err := left.Charge(c.value, c.depth); c.fits != (err == nil) || err != nil && !errors.Is(err, jsonvalue.ErrTooLarge) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

func Example() {
	fmt.Println(jsonvalue.KindOf([]any{}), jsonvalue.KindOf(nil), jsonvalue.KindOf(1.0), jsonvalue.Escape("a/b~c"))
	// Output: a list null a number a~1b~0c
}
