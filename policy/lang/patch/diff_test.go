package patch_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/quaymaster/quaymaster/policy/lang/patch"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct{ before, after, want, reason string }{
		{`{}`, `{}`, `[]`, "nothing"},
		{`{a: {b: [1, {c: d}]}}`, `{a: {b: [1, {c: d}]}}`, `[]`, "equal objects"},
		{`{a: 1}`, `{a: 2}`, `[replace /a 2]`, "another value"},
		{`{a: 1}`, `{a: "1"}`, `[replace /a "1"]`, "another type"},
		{`{a: null}`, `{}`, `[remove /a]`, "null is a value"},
		{`{}`, `{a: null}`, `[add /a null]`, "and may be added"},
		{`{a: {}}`, `{a: []}`, `[replace /a []]`, "an object and a list"},
		{`{b: 1, a: 1}`, `{c: 1, d: 1}`, `[remove /a] [remove /b] [add /c 1] [add /d 1]`, "in the order of names"},
		{`{a: {b: {c: 1, d: 2}}}`, `{a: {b: {c: 1, d: 3}}}`, `[replace /a/b/d 3]`, "only what differs"},
		{`{a/b~c: 1}`, `{a/b~c: 2}`, `[replace /a~1b~0c 2]`, "escaped"},
		{`{"": {"": 1}}`, `{"": {"": 2}}`, `[replace // 2]`, "empty names"},
		{`{a: [1, 2, 3]}`, `{a: [1, 3]}`, `[remove /a/1]`, "an element less"},
		{`{a: [1, 3]}`, `{a: [1, 2, 3]}`, `[add /a/1 2]`, "an element more"},
		{`{a: [1, 2]}`, `{a: [0, 1, 2, 3]}`, `[add /a/2 3] [add /a/0 0]`, "at both ends"},
		{`{a: [1, 2, 3]}`, `{a: []}`, `[remove /a/2] [remove /a/1] [remove /a/0]`, "none left"},
		{`{a: []}`, `{a: [1, 2]}`, `[add /a/0 1] [add /a/1 2]`, "from none"},
		{`{a: [1, 2, 3]}`, `{a: [1, 5, 3]}`, `[replace /a/1 5]`, "another element"},
		{`{a: [{name: x, v: 1}, {name: y}]}`, `{a: [{name: x, v: 2}, {name: y}]}`, `[replace /a/0/v 2]`, "a member of an element"},
		{`{a: [{name: x}, {name: y}]}`, `{a: [{name: z}, {name: x, v: 1}, {name: y}]}`, `[add /a/0/v 1] [add /a/0 {"name":"z"}]`, "an element in front and one changed"},
		{`{a: [{name: x, v: 1}]}`, `{a: [{name: q, v: 1}]}`, `[replace /a/0 {"name":"q","v":1}]`, "another name is another element"},
		{`{a: [{v: 1, w: 1}]}`, `{a: [{v: 2, w: 1}]}`, `[replace /a/0/v 2]`, "elements without names"},
		{`{a: [{name: x}, {name: y}, {name: z}]}`, `{a: [{name: x}, {name: z, v: 1}]}`, `[add /a/2/v 1] [remove /a/1]`, "an element less and one changed"},
		{`{a: [{name: x}, t]}`, `{a: [u]}`, `[replace /a/1 "u"] [remove /a/0]`, "a text is more like a text than an object is"},
		{`{a: [t]}`, `{a: [u, {name: x}]}`, `[add /a/1 {"name":"x"}] [replace /a/0 "u"]`, "the other way round, too"},
		{`{a: [{v: 1}]}`, `{a: [{name: null, v: 2}]}`, `[replace /a/0 {"name":null,"v":2}]`, "a name that only one has"},
		{`{a: [{name: null, v: 1}]}`, `{a: [{v: 2}]}`, `[replace /a/0 {"v":2}]`, "whichever has it"},
		{`{a: [[1, 2], [3]]}`, `{a: [[1], [3]]}`, `[remove /a/0/1]`, "lists in lists"},
	} {
		before, after := object(t, c.before), object(t, c.after)
		operations := patch.Diff(before, after)
		if was := summary(t, operations, nil); was != c.want {
			t.Errorf("%s: %s to %s\n got %s\nwant %s", c.reason, c.before, c.after, was, c.want)
		}
		check(t, before, after, operations)
	}
}

// check applies operations by another library, and by this one.
func check(t *testing.T, before, after map[string]any, operations []patch.Operation) {
	t.Helper()
	want := text(t, after)
	if operations == nil {
		if got := text(t, before); got != want {
			t.Errorf("no operations make %s of %s", want, got)
		}
		return
	}
	written := []byte(text(t, operations))
	decoded, err := jsonpatch.DecodePatch(written)
	if err != nil {
		t.Fatalf("%s: %v", written, err)
	}
	got, err := decoded.Apply([]byte(text(t, before)))
	if err != nil {
		t.Fatalf("%s on %s: %v", written, text(t, before), err)
	}
	var result map[string]any
	if err := json.Unmarshal(got, &result); err != nil {
		t.Fatal(err)
	}
	if was := text(t, result); was != want {
		t.Fatalf("%s made %s of %s, want %s", written, was, text(t, before), want)
	}
	var list []any
	if err := json.Unmarshal(written, &list); err != nil {
		t.Fatal(err)
	}
	ours, err := mustJSON(t, list).Apply(nil, before)
	if err != nil || text(t, ours) != want {
		t.Fatalf("%s made %s of %s, want %s: %v", written, text(t, ours), text(t, before), want, err)
	}
}

// random makes objects and lists of few names and values, so that much of two
// of them is alike.
func random(r *rand.Rand, depth int) any {
	switch kind := r.IntN(8); {
	case kind < 3 && depth > 0:
		members := map[string]any{}
		for range r.IntN(5) {
			members[[]string{"a", "b", "name", "key", "x/y", "~"}[r.IntN(6)]] = random(r, depth-1)
		}
		return members
	case kind < 5 && depth > 0:
		items := make([]any, r.IntN(5))
		for i := range items {
			items[i] = random(r, depth-1)
		}
		return items
	}
	return []any{nil, true, 1.0, 2.5, "x", "y", ""}[r.IntN(7)]
}

func randomObject(r *rand.Rand) map[string]any {
	members := map[string]any{}
	for range r.IntN(5) {
		members[[]string{"a", "b", "c", "x/y"}[r.IntN(4)]] = random(r, 4)
	}
	return members
}

// vary changes some parts of a value and shares the rest.
func vary(r *rand.Rand, value any) any {
	if r.IntN(6) == 0 {
		return random(r, 2)
	}
	switch v := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, item := range v {
			switch r.IntN(5) {
			case 0:
			case 1:
				result[key] = vary(r, item)
			default:
				result[key] = item
			}
		}
		return result
	case []any:
		var result []any
		for _, item := range v {
			switch r.IntN(6) {
			case 0:
			case 1:
				result = append(result, random(r, 1), item)
			case 2:
				result = append(result, vary(r, item))
			default:
				result = append(result, item)
			}
		}
		return result
	}
	return value
}

func TestDiffMakesAfterOfBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		before := randomObject(r)
		after, ok := vary(r, before).(map[string]any)
		if !ok || r.IntN(4) == 0 {
			after = randomObject(r)
		}
		// Null lists are no JSON of encoding/json's.
		after = object(t, text(t, after))
		operations := patch.Diff(before, after)
		check(t, before, after, operations)
		if again := patch.Diff(before, after); text(t, again) != text(t, operations) {
			t.Fatalf("%s and %s", text(t, operations), text(t, again))
		}
	}
}

func TestDiffIsMinimal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		before := object(t, `{a: {b: [{name: x, v: 1}, {name: y}, {name: z}], c: {d: e}}, f: [1, 2, 3]}`)
		after := object(t, text(t, before))
		list := after["a"].(map[string]any)["b"].([]any)
		change := r.IntN(3)
		switch change {
		case 0:
			list[r.IntN(3)].(map[string]any)["new"] = 1.0
		case 1:
			i := r.IntN(3)
			list = slices.Delete(list, i, i+1)
		case 2:
			list = slices.Insert(list, r.IntN(4), any(map[string]any{"name": "new"}))
		}
		after["a"].(map[string]any)["b"] = list
		if operations := patch.Diff(before, after); len(operations) != 1 {
			t.Fatalf("change %d: %s", change, summary(t, operations, nil))
		}
	}
}

func TestDiffBounds(t *testing.T) {
	many := func(n int, value any) map[string]any {
		items := make([]any, n)
		for i := range items {
			items[i] = map[string]any{"name": fmt.Sprint(i), "v": value}
		}
		return map[string]any{"a": map[string]any{"items": items}, "b": "same"}
	}
	for _, c := range []struct {
		n, want int
		reason  string
	}{
		{150, 150, "aligned"},
		{1000, 1000, "index by index"},
		{10_001, 1, "too many: the field is replaced"},
	} {
		before, after := many(c.n, "x"), many(c.n, "y")
		operations := patch.Diff(before, after)
		if len(operations) != c.want {
			t.Errorf("%s: %d operations, want %d", c.reason, len(operations), c.want)
		}
		check(t, before, after, operations)
	}
}

func TestOperationJSON(t *testing.T) {
	for want, o := range map[string]patch.Operation{
		`{"op":"remove","path":"/a"}`:                {Op: "remove", Path: "/a"},
		`{"op":"add","path":"/a","value":null}`:      {Op: "add", Path: "/a"},
		`{"op":"replace","path":"/a","value":false}`: {Op: "replace", Path: "/a", Value: false},
	} {
		if got := text(t, o); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
