package patch_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// TestLargeIntegers: an integer that a float64 rounds is neither written nor found equal. One below
// 2^53, and one that no patch writes, is left as it is.
func TestLargeIntegers(t *testing.T) {
	const crate = `{big: 9007199254740993, low: -9007199254740993, top: 9223372036854775807, last: 9007199254740991, l: [9007199254740993, 1], m: {x: 1}, half: 0.5, huge: 1.0e+300}`
	const near = "an integer near"
	for _, c := range []struct{ kind, patch, want string }{
		{"json", `[{op: copy, from: /big, path: /x}]`, near},
		{"json", `[{op: move, from: /low, path: /x}]`, near},
		{"json", `[{op: copy, from: /top, path: /x}]`, near},
		{"json", `[{op: copy, from: /l, path: /x}]`, near},
		{"json", `[{op: add, path: /x, value: 9007199254740993}]`, near},
		{"json", `[{op: replace, path: /m, value: {z: [9007199254740993]}}]`, near},
		{"json", `[{op: test, path: /big, value: 9007199254740992}, {op: remove, path: /m}]`, near},
		{"json", `[{op: test, path: /l, value: [9007199254740992, 1]}, {op: remove, path: /m}]`, near},
		{"json", `[{op: copy, from: /last, path: /x}]`, `"x":9007199254740991`},
		{"json", `[{op: copy, from: /huge, path: /x}]`, `"x":1e+300`},
		{"json", `[{op: move, from: /half, path: /x}]`, `"x":0.5`},
		{"json", `[{op: test, path: /last, value: 9007199254740991}, {op: add, path: /x, value: 1}]`, `"x":1`},
		{"json", `[{op: test, path: /big, value: 7}]`, "the test failed"},
		{"json", `[{op: remove, path: /big}]`, `{"half"`},
		{"json", `[{op: add, path: /l/-, value: 2}]`, `,1,2]`},
		{"merge", `{x: 9007199254740993}`, near},
		{"merge", `{x: {z: [-9007199254740993]}}`, near},
		{"merge", `{big: 9007199254740992}`, near},
		{"merge", `{l: [9007199254740993]}`, near},
		{"merge", `{x: "{{ big }}"}`, near},
		{"merge", `{x: 9007199254740991}`, `"x":9007199254740991`},
		{"merge", `{x: {z: [0.5, 1.0e+300]}}`, `"x":{"z":[0.5,1e+300]}`},
		{"merge", `{x: "9007199254740993"}`, `"x":"9007199254740993"`},
		{"merge", `{big: null}`, `{"half"`},
	} {
		var p applier
		if c.kind == "json" {
			p = mustJSON(t, read(t, c.patch))
		} else {
			p = mustMerge(t, read(t, c.patch))
		}
		o := object(t, crate)
		got, err := apply(t, p, variable.Context(o), o)
		was := text(t, got)
		if err != nil {
			was = err.Error()
		}
		if !strings.Contains(was, c.want) || (c.want == near) != (err != nil) && c.want != "the test failed" {
			t.Errorf("%s: %s, want %s", c.patch, was, c.want)
		}
	}
}
