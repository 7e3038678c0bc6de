package document_test

import (
	"encoding/json"
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
		{`{"nam":"a"}`, "path.nam: unknown field: did you mean name?", "a misspelt field of an embedded struct"},
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

type inner struct {
	Message string `json:"message"`
}

type Named struct {
	Other string `json:"other"`
}

type wide struct {
	Named   `json:"named"`
	Pointer *inner           `json:"pointer"`
	List    []inner          `json:"list"`
	Map     map[string]inner `json:"map"`
	JSON    any              `json:"json"`
	GoName  inner
}

// TestMeant: what a misspelt field was meant to be is looked for where it stands.
func TestMeant(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{`{"pointer":{"mesage":"b"}}`, "pointer.mesage: unknown field: did you mean message?", "behind a pointer"},
		{`{"list":[{},{"mesage":"b"}]}`, "list[1].mesage: unknown field: did you mean message?", "in a list"},
		{`{"map":{"k":{"mesage":"b"}}}`, "map.k.mesage: unknown field", "in a map with members of any name"},
		{`{"named":{"othr":"b"}}`, "named.othr: unknown field: did you mean other?", "in a struct that is embedded by a name"},
		{`{"othr":"b"}`, "othr: unknown field", "which has no fields without it"},
		{`{"mesage":"b"}`, "mesage: unknown field", "of a member that has no name in JSON, and is not embedded"},
		{`{"json":{"mesage":"b"}}`, "", "in JSON that may be anything"},
		{`{"json":1,"json":2}`, "json: duplicate field", "twice, which is not misspelt"},
	} {
		err := document.Decode([]byte(c.text), &wide{}, "")
		if said := fmt.Sprint(err); (err == nil) != (c.want == "") || err != nil && said != c.want {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, c := range []struct{ path, below, want string }{
		{"a", "b", "a.b"}, {"", "b", "b"}, {"a", "", "a"}, {"a", "[0]", "a[0]"}, {"", "", ""},
	} {
		if got := document.Join(c.path, c.below); got != c.want {
			t.Errorf("%q and %q: %q", c.path, c.below, got)
		}
	}
}

func TestPlain(t *testing.T) {
	got, err := document.Plain(inner{Message: "a"})
	if members, _ := got.(map[string]any); err != nil || members["message"] != "a" {
		t.Errorf("%v, %v", got, err)
	}
	for reason, value := range map[string]any{"a function": func() {}, "a number that is too large": json.RawMessage("1e400")} {
		if got, err := document.Plain(value); err == nil {
			t.Errorf("%s became %v", reason, got)
		}
	}
}

func TestUnder(t *testing.T) {
	err := document.Under("spec", errors.Join(field.Fail("a", "is bad"), field.Fail("[0].b", "is worse"), errors.New("and more")))
	if got, want := err.Error(), "spec.a: is bad\nspec[0].b: is worse\nspec: and more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	wrapped := fmt.Errorf("in a file: %w", field.Fail("a", "is bad"))
	if got, want := document.Under("spec", wrapped).Error(), "spec: in a file: a: is bad"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if document.Under("spec", nil) != nil {
		t.Error("no error became one")
	}
}

func TestExemptingConditions(t *testing.T) {
	one := func(operator string, value any) map[string]any {
		return map[string]any{"key": "a", "operator": operator, "value": value}
	}
	for _, c := range []struct {
		reason     string
		conditions any
		refused    bool
	}{
		{"a number", one("AllNotIn", 1.0), true},
		{"a boolean", one("AnyNotIn", true), true},
		{"a list of a number", one("AllNotIn", []any{1.0}), false},
		{"a text", one("NotIn", "1"), false},
		{"an operator that holds for a number", one("AllIn", 1.0), false},
		{"in all", map[string]any{"all": []any{one("Equals", 1.0), one("NotIn", 1.0)}}, true},
		{"in any", map[string]any{"any": []any{one("NotIn", 1.0)}}, true},
		{"in the old form", []any{one("NotIn", 1.0)}, true},
		{"a field that is refused elsewhere", map[string]any{"other": one("NotIn", 1.0)}, false},
	} {
		if err := document.ExemptingConditions(c.conditions, "path"); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.reason, err)
		}
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
		{map[string]any{"any": []any{one}, "all": []any{}}, false, true, "a condition, and all of none"},
		{map[string]any{"any": map[string]any{}}, false, true, "any of no list"},
		{map[string]any{"other": []any{}}, true, true, "a field that is refused elsewhere"},
		{[]any{map[string]any{"any": []any{one}}, map[string]any{"all": []any{}}}, false, true, "all of none in a list, not the first"},
		{[]any{}, false, true, "an empty list"},
		{nil, false, true, "null"},
		{"text", true, true, "a text, which is refused elsewhere"},
	} {
		if err := document.EmptyConditions(c.conditions, "path"); (err == nil) != c.asks {
			t.Errorf("%s: %v", c.reason, err)
		}
		if err := document.NeverHolds(c.conditions, "path"); (err == nil) != c.holds {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	for _, c := range []struct {
		object any
		want   bool
	}{
		{map[string]any{"a": nil}, true}, {map[string]any{"a": []any{}}, true}, {map[string]any{"a": map[string]any{}}, true},
		{map[string]any{}, false}, {map[string]any{"a": []any{1}}, false}, {map[string]any{"a": map[string]any{"b": 1}}, false},
		{map[string]any{"a": ""}, false}, {map[string]any{"b": nil}, false}, {"a", false}, {nil, false},
	} {
		if got := document.WrittenEmpty(c.object, "a"); got != c.want {
			t.Errorf("%v: written and empty %t", c.object, got)
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

// TestUnknownAnnotations: an annotation of the project that has no effect is an error; those of
// others are left alone.
func TestUnknownAnnotations(t *testing.T) {
	const known = "quaymaster.dev/platforms"
	for key, want := range map[string]string{
		known:                         "",
		document.GuardAnnotation:      "",
		document.OriginAnnotation:     "", // a generate rule may create policies
		"example.com/platforms":       "",
		"quaymaster.dev.example/a":    "",
		"quaymaster.dev/plattforms":   "unknown annotation: did you mean quaymaster.dev/platforms?",
		"quaymaster.dev/guards":       "unknown annotation: did you mean quaymaster.dev/guard?",
		"quaymaster.dev/of-my-making": "unknown annotation",
		"quaymaster.dev/":             "unknown annotation",
	} {
		err := document.UnknownAnnotations(map[string]string{key: "x"}, known)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasSuffix(err.Error(), "metadata.annotations["+key+"]: "+want)) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
}

// TestIsUnreported: the label disables reports with any value, and no other label does.
func TestIsUnreported(t *testing.T) {
	for _, row := range []struct {
		labels map[string]any
		want   bool
	}{
		{nil, false},
		{map[string]any{"reports.kyverno.io/disabled": "true"}, true},
		{map[string]any{"reports.kyverno.io/disabled": ""}, true},
		{map[string]any{"reports.kyverno.io/disable": "true"}, false},
	} {
		if got := document.IsUnreported(row.labels); got != row.want {
			t.Errorf("%v: %t", row.labels, got)
		}
	}
}
