package cue_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/cue"
)

// pad makes a text as long as n.
func pad(n int, text string) string { return text + strings.Repeat("x", n-len(text)) }

// TestPoliciesAtTheBounds has policies that are as large as can be, and larger ones.
func TestPoliciesAtTheBounds(t *testing.T) {
	same := func(s string) func(int) string { return func(int) string { return s } }
	nested := func(n int) string {
		return "a: " + strings.Repeat("[", n) + "1" + strings.Repeat("]", n) + "\npredicate: _"
	}
	numbers := func(n int) string { return "(" + times(n, func(i int) string { return fmt.Sprint(i) }, "|") + ")" }
	for _, c := range []struct{ policy, refusal, reason string }{
		{pad(64<<10, "predicate: _ //"), "", "a policy"},
		{pad(64<<10+1, "predicate: _ //"), "exceeds the bound of 65536", "a longer one"},
		{"predicate: x?: \"" + strings.Repeat("(", 500) + "\"", "", "brackets"},
		{"predicate: x?: \"" + strings.Repeat("[", 500) + "(\"", "nested deeper", "one more"},
		{"predicate: x?: \"" + strings.Repeat("{}", 600) + "\"", "", "brackets side by side"},
		{nested(198), "", "lists in one another"},
		{nested(199), "nested deeper", "one more"},
		{"predicate: x: " + times(7, same("(1|2)"), " & "), "", "128 combinations"},
		{"predicate: x: (1|2|3) & (" + times(43, func(i int) string { return fmt.Sprint(i) }, "|") + ")", "129 combinations", "one more"},
		{"predicate: a: 3*4", "", "a product of numbers"},
		{"predicate: a: 3*[1]", "any amount", "of a list"},
		{"predicate: a: [1]*3", "any amount", "the other way round"},
		{"predicate: a: 3*'x'", "any amount", "of bytes"},
		{"predicate: a: 3*#\"x\"#", "any amount", "of a text in marks"},
		{"predicate: a: 3*(\"x\")", "any amount", "of a text in parentheses"},
		{"predicate: a: \"x\" + \"y\"", "", "a text and another"},
		{"predicate: {n: int, a: 3*n, b: n*(2+len(\"x\"))}", "", "of numbers by their names"},
		{"s: \"x\"\npredicate: a: 3*s", "any amount", "of a text by its name"},
		{"#D: s: \"x\"\npredicate: a: #D.s*3", "any amount", "of one in a definition"},
		{"#D: s: \"x\"\npredicate: a: #D.\"s\"*3", "any amount", "of one with a name in quotes"},
		{"let s = t\nlet t = \"x\"\npredicate: a: 3*s", "any amount", "by way of another name"},
		{"s: int | *\"x\"\npredicate: a: 3*s", "any amount", "of a text that is the default"},
		{"predicate: {n: int, a: 3*\"\\(n)\"}", "any amount", "of a text made of a number"},
		{"predicate: {t: string, a: 3*(\"x\" + t)}", "any amount", "of a text and what may be one"},
		{"predicate: {t: string, a: 3*(t + \"x\")}", "any amount", "of what may be one and a text"},
		{"predicate: {a: 3*x.c, x: {c: y.a}, y: a: 1}", "", "of numbers that refer to each other in a circle"},
		{"predicate: {k: " + numbers(12) + ", a: k: " + numbers(11) + "}", "", "alternatives of one name, at two places"},
		{"predicate: {k: " + numbers(12) + ", k: " + numbers(11) + "}", "predicate.k has 132 combinations", "at one"},
		{"predicate: {let a = {k: " + numbers(12) + "}, k: " + numbers(11) + ", b: a}", "", "in a let beside them"},
		{"predicate: {k: " + numbers(11) + ", x: [X={k: " + numbers(12) + ", j?: X.k}]}", "refers to itself", "by another name of an element"},
		{"predicate: x: ({k: " + numbers(12) + "} | {k: " + numbers(11) + "})", "", "of one alternative, and of another"},
		{"predicate: x: ({k: " + numbers(12) + "} & {k: " + numbers(11) + "})", "132 combinations", "of two that are one"},
		{"predicate: [string]: k: " + numbers(12) + " & (" + numbers(11) + ")", "predicate.[].k has 132 combinations", "of any field"},
	} {
		_, err := cue.Compile(c.policy, cue.Options{Time: time.Minute})
		if c.refusal == "" && err != nil || c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)) {
			t.Errorf("%s: %.300v; want %q", c.reason, err, c.refusal)
		}
	}
}

// TestDataAtTheBounds has data that is as large as can be, and larger.
func TestDataAtTheBounds(t *testing.T) {
	predicate := func(value any) any { return map[string]any{"predicate": value} }
	numbers := func(n int) any { return slices.Repeat([]any{1.0}, n) }
	parted := func(n int) any { // as many values, not all in one list
		list := []any{}
		for ; n > 199; n -= 199 {
			list = append(list, numbers(198))
		}
		return append(list, slices.Repeat([]any{1.0}, n)...)
	}
	nested := func(n int) any {
		value := any(1.0)
		for range n {
			value = []any{value}
		}
		return value
	}
	const cross = "pairs: len([for a in predicate for b in predicate {a + b}])\npredicate: [...]"
	const split = "import \"strings\"\nn: len(strings.Split(predicate, \"\"))\npredicate: string"
	const twice = "import \"strings\"\nn: len([for a in strings.Split(predicate, \"\") for b in strings.Split(predicate, \"\") {a}])\npredicate: string"
	own := func(list string) string {
		return "l: " + list + "\npairs: len([for a in l for b in l {a + b}])\npredicate: _"
	}
	ones := func(n int) string { return "[" + strings.Repeat("1,", n) + "]" }
	members := func(n int) string {
		return "{" + times(n, func(i int) string { return fmt.Sprintf("m%d: 1", i) }, ", ") + "}"
	}
	for _, c := range []struct {
		policy  string
		data    any
		refusal string
		reason  string
	}{
		{"predicate: _", predicate(strings.Repeat("x", 4<<20-16)), "", "bytes"},
		{"predicate: _", predicate(strings.Repeat("x", 4<<20-15)), "the data of 4194305 bytes exceeds", "one more"},
		{"predicate: _", predicate(parted(49_998)), "", "values"},
		{"predicate: _", predicate(parted(49_999)), "more than 50000 values", "one more"},
		{"predicate: _", predicate(append(parted(49_997).([]any), []any{1.0, 1.0})), "more than 50000 values", "a list as the last that there is room for"},
		{"predicate: _", predicate(nested(99)), "", "lists in one another"},
		{"predicate: _", predicate(nested(100)), "nested deeper than 100", "one more"},
		{"predicate: _", predicate(math.NaN()), "unsupported value", "a number that is no JSON"},
		{cross, predicate(numbers(141)), "", "iterations"},
		{cross, predicate(numbers(142)), "20000 iterations", "too many"},
		{"all: len([for a in predicate let b = [for d in predicate {a}] for c in b {c}])\npredicate: [...]", predicate(numbers(20)), "", "rounds over what a loop made"},
		{"all: len([for a in predicate let b = [for d in predicate {a}] for c in b {c}])\npredicate: [...]", predicate(numbers(100)), "20000 iterations", "over what a longer one made"},
		{split + "\nall: len([for a in [predicate] {a}])", predicate(strings.Repeat("x", 20_001)), "", "as many of one loop"},
		{split, predicate(strings.Repeat("x", 50_000)), "", "letters"},
		{split, predicate(strings.Repeat("x", 50_001)), "taken apart", "one more"},
		{twice, predicate(strings.Repeat("x", 20)), "", "loops over letters"},
		{twice, predicate(strings.Repeat("x", 142)), "20000 iterations", "over too many"},
		{own(ones(20)), predicate(1.0), "", "loops over the policy's own list"},
		{own(ones(142)), predicate(1.0), "20000 iterations", "over one that is too long"},
		{own(members(20)), predicate(1.0), "", "over an object of its own"},
		{own(members(142)), predicate(1.0), "20000 iterations", "over one with too many members"},
	} {
		condition, err := cue.Compile(c.policy, cue.Options{Time: time.Minute})
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		held, why, err := condition.Holds(c.data)
		if c.refusal == "" && (!held || err != nil) || c.refusal != "" && (held || err == nil || !strings.Contains(err.Error(), c.refusal)) {
			t.Errorf("%s: %t %.300s %v; want %q", c.reason, held, why, err, c.refusal)
		}
	}
}

// TestLoopsAreCounted has loops that are hard to see, over 200 elements or 20.
func TestLoopsAreCounted(t *testing.T) {
	list := func(n int) any {
		values := make([]any, n)
		for i := range values {
			values[i] = map[string]any{"n": float64(i), "l": []any{1.0}}
		}
		return map[string]any{"l": values, "predicate": map[string]any{}}
	}
	const data = "\npredicate: {...}\nl: [...]"
	for _, c := range []struct {
		policy  string
		refused bool // over many
		reason  string
	}{
		{"all: len([for a in l {a}])", false, "one loop"},
		{"all: len([for a in l for b in a.l {b}])", false, "a loop over what another found"},
		{"all: len([for a in l if len([for b in l if b.n == a.n {b}]) == 1 {a}])", true, "a loop in a condition"},
		{"all: len([for a in l if len([for b in a.l if b == 1 {b}]) == 1 {a}])", false, "one over a result of the outer one, there"},
		{"all: len([for a in l for b in [for c in l {a}] {b}])", true, "a loop in the range of another"},
		{"all: len([for a in l let b = len([for c in l {c}]) {b}])", true, "a loop in a let of another"},
		{"one: [for a in l {a}]\nall: len([for b in l {len(one)}])", true, "a loop by a name"},
		{"#D: one: [for a in l {a}]\nall: len([for b in l {len(#D.one)}])", true, "by a field of a definition"},
		{"one: [for a in l {a}]\nall: len([for one in l {one}])", false, "a variable that has the name of one"},
		{"all: len([for i, a in l {i}])", false, "with an index"},
		{"all: len([for i, a in l for b in l[i].l {b}])", false, "by an index that another found"},
		{"all: [len([for a in l {x: 1}]), len([for b in l {x: 1}])]", false, "one loop beside another"},
		{"all: len([for a in l {x: [for b in a.l for c in a.l {b}]}])", false, "loops over results of the outer one, in its output"},
		{"all: len([for a in l let b = [for d in a.l {d}] {x: [for c in b {c}]}])", false, "by way of a let"},
		{"all: [for a in l {(\"k\\([for b in l {b.n}][0])\"): a.n}]", true, "in the name of a field"},
		{"all: len([for a in l let b = l for c in b {c}])", true, "by way of a let that has nothing of another"},
		{"n: [for a in l {a}]\nall: len([for b in l {x: b.n}])", false, "a field that has the name of a loop"},
		{"import \"list\"\nto: 1\nall: len([for a in l for b in list.Slice(a.l, 0, to) {b}])", false, "over a part of what another found"},
		{"all: {for a in l {\"k\\(a.n)\": {for b in l {\"k\\(b.n)\": 1}}}}", true, "loops that make members"},
	} {
		condition, err := cue.Compile(c.policy+data, cue.Options{Time: time.Minute})
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if held, why, err := condition.Holds(list(20)); !held || err != nil {
			t.Errorf("%s, of few: %t %s %v", c.reason, held, why, err)
		}
		_, why, err := condition.Holds(list(200))
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "iterations") {
			t.Errorf("%s, of many: %s %v; want it refused: %t", c.reason, why, err, c.refused)
		}
	}
}
