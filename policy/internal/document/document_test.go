package document_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

type Document struct {
	Name string `json:"name"`
}

type rule struct {
	Document
	Validate struct {
		Message string   `json:"message"`
		List    []string `json:"list"`
		Yes     bool     `json:"yes"`
		Count   int      `json:"count"`
	} `json:"validate"`
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{`{"name":"a","validate":{"message":"b","list":["c"],"yes":true,"count":1}}`, "", "every field"},
		{`{"nam":"a"}`, "path.nam: unknown field: did you mean name?", "a misspelt field, of what is embedded"},
		{`{"validate":{"mesage":"b"}}`, "path.validate.mesage: unknown field: did you mean message?", "a misspelt field below"},
		{`{"validate":{"other":"b"}}`, "path.validate.other: unknown field", "an unknown field"},
		{`{"Name":"a"}`, "path.Name: unknown field", "another case"},
		{`{"name":["a"]}`, "name: want a string, found array", "a list for a text"},
		{`{"validate":{"list":"a"}}`, "validate.list: want a list, found string", "a text for a list"},
		{`{"validate":{"yes":"a"}}`, "validate.yes: want true or false, found string", "a text for a choice"},
		{`{"validate":{"count":"a"}}`, "validate.count: want a whole number, found string", "a text for a number"},
		{`{`, "path: ", "no JSON"},
	} {
		err := document.Decode([]byte(c.text), &rule{}, "path")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}

func TestUnder(t *testing.T) {
	err := document.Under("spec", errors.Join(field.Fail("a", "is bad"), field.Fail("[0].b", "is worse"), errors.New("and more")))
	if got, want := err.Error(), "spec.a: is bad\nspec[0].b: is worse\nspec: and more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if document.Under("spec", nil) != nil {
		t.Error("no error became one")
	}
}

func TestEmpty(t *testing.T) {
	one := map[string]any{"key": "a", "operator": "Equals", "value": "b"}
	for _, c := range []struct {
		conditions  any
		asks, holds bool // asks something; may hold
		reason      string
	}{
		{map[string]any{"any": []any{one}}, true, true, "a condition"},
		{map[string]any{"any": []any{}}, false, false, "any of none"},
		{map[string]any{"all": []any{}}, false, true, "all of none"},
		{map[string]any{}, false, true, "nothing"},
		{[]any{map[string]any{"any": []any{}}}, false, false, "any of none in a list"},
		{[]any{one}, true, true, "the old form"},
	} {
		if err := document.EmptyConditions(c.conditions, "path"); (err == nil) != c.asks {
			t.Errorf("%s: %v", c.reason, err)
		}
		if err := document.NeverHolds(c.conditions, "path"); (err == nil) != c.holds {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	if !document.WrittenEmpty(map[string]any{"a": nil}, "a") || document.WrittenEmpty(map[string]any{}, "a") || document.WrittenEmpty(map[string]any{"a": []any{1}}, "a") {
		t.Error("what is written and empty")
	}
}

func TestNearest(t *testing.T) {
	names := []string{"verifyImages", "validate", "mutate"}
	for name, want := range map[string]string{"verifyImage": "verifyImages", "verifyimages": "verifyImages", "validat": "validate", "mutation": "", "x": "", strings.Repeat("a", 100): ""} {
		if got := document.Nearest(name, names); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func Example() {
	var into struct {
		Pattern any `json:"pattern"`
	}
	fmt.Println(document.Decode([]byte(`{"patern": {}}`), &into, "spec.rules[0].validate"))
	// Output: spec.rules[0].validate.patern: unknown field: did you mean pattern?
}
