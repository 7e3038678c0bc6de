package jmespath_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// holed reads an expression in which «» are holes.
func holed(text string) []jmespath.Piece {
	var pieces []jmespath.Piece
	for i, part := range strings.Split(text, "«»") {
		if i > 0 {
			pieces = append(pieces, jmespath.Piece{Hole: true})
		}
		pieces = append(pieces, jmespath.Piece{Text: part})
	}
	return pieces
}

// filling is an expression with holes, their values, and the result.
type filling struct {
	expression string
	values     []any
	want       any
	refusal    string
	reason     string
}

func fill(t *testing.T, data any, rows []filling) {
	t.Helper()
	for _, c := range rows {
		query, err := newEngine(t).CompilePieces(holed(c.expression))
		var got any
		if err == nil {
			got, err = query.Search(data, c.values...)
		}
		switch {
		case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
			t.Errorf("%.60s with %.60v = %.80v, %v; want %q: %s", c.expression, c.values, got, err, c.refusal, c.reason)
		case c.refusal == "" && (err != nil || !reflect.DeepEqual(got, c.want)):
			t.Errorf("%.60s with %.60v = %.80v, %v; want %.80v: %s", c.expression, c.values, got, err, c.want, c.reason)
		}
	}
}

// TestHolesHoldNoCode has values that would be more than a key or a path.
func TestHolesHoldNoCode(t *testing.T) {
	long := strings.Repeat("a", 510)
	fill(t, map[string]any{
		"a": map[string]any{"b": "path", "list": list("zero", map[string]any{"c": "one"})}, "azAZ_09": map[string]any{"b": "names"},
		long: map[string]any{"b": "long"}, long + "a": map[string]any{"b": "longer"}, "items": list("zero", "one"),
	}, []filling{
		{"@.«»", list("a.b"), "path", "", "a path"},
		{"@.«»", list("azAZ_09.b"), "names", "", "of all that names are made of"},
		{"@.«»", list("a.list[0]"), "zero", "", "with an index"},
		{"@.«»", list("a.list[1].c"), "one", "", "with an index further up"},
		{"@.«»", list("items[65535] || 'nothing'"), nil, "Unknown key", "another expression in its place"},
		{"@.«»", list("a.b || 'nothing'"), nil, "Unknown key", "of a path, too"},
		{"@.«»", list("a.list[?@]"), nil, "Unknown key", "a filter"},
		{"@.«»", list("a.list[*]"), nil, "Unknown key", "a projection"},
		{"@.«»", list("a.list[0"), nil, "Unknown key", "a bracket that is not closed"},
		{"@.«»", list("a.list[0]]"), nil, "Unknown key", "one too many"},
		{"@.«»", list("a.list[65536]"), nil, "Unknown key", "too large an index"},
		{"@.«»", list("[0]"), nil, "Unknown key", "an index of nothing"},
		{"@.«»", list("a..b"), nil, "Unknown key", "nothing between dots"},
		{"@.«»", list("a.b."), nil, "Unknown key", "nothing behind one"},
		{"@.«»", list("a.0b"), nil, "Unknown key", "a name that begins with the first digit"},
		{"@.«»", list("a.9b"), nil, "Unknown key", "or with the last"},
		{"@.«»", list(long + ".b"), "long", "", "a path as long as can be"},
		{"@.«»", list(long + "a.b"), nil, "Unknown key", "one more is a key"},
		{"items[«»]", list("1.5"), nil, "not a whole number", "half an index"},
	})
}

// TestHolesHavePlaces covers holes that get their type from the text around them.
func TestHolesHavePlaces(t *testing.T) {
	data := map[string]any{"azAZ_09x": "name", "a\\x": "backslash", "items": list("zero", "one"), "own": "\uE0000\uE001"}
	fill(t, data, []filling{
		{"azAZ_09«»", list("x"), "name", "", "a name of all that names are made of"},
		{"items | [«»]", list(1.0), "one", "", "an index behind a pipe"},
		{"[`1`, [«»]] | [1][0]", list(7.0), 7.0, "", "a list in a list"},
		{"items | contains([ «» ], 'x')", list("x"), true, "", "a list with spaces"},
		{"items.[«»] | [0]", list("x"), "x", "", "a list behind a dot"},
		{"nothing || '«»'", list("x"), "x", "", "in place of nothing"},
		{"nothing || 'a «»'", list("x"), "a x", "", "a part of it"},
		{"nothing || `[«»]`", list(1.0), list(1.0), "", "in a literal"},
		{"nothing || «»", list(1.0), 1.0, "", "alone"},
		{"azAZ_09«» || 'y'", list("x"), "name", "", "a present value comes first"},
		{"azAZ_09x.«» || 'y'", list("x"), "y", "", "what may not be there"},
		{"«» || 'y'", list("x"), "x", "", "in front"},
		{"[«»]", list(1.0), nil, "", "an index of an object"},
		{"items | [`1`, «»]", list(2.0), list(1.0, 2.0), "", "the last of a list is no index"},
		{"items[zer«»]", list("o"), nil, "SyntaxError", "nor is half a name"},
		{"[azAZ_09«»]", list("x"), list("name"), "", "which may stand in a list"},
		{"items[ «» ]", list(1.0), "one", "", "an index with spaces"},
		{"@.{\"k«»\": '«»'}.kx", list("x", "y"), "y", "", "a hash's key and value"},
		{"@.{\"k«»\": «»}.kx", list("x", 3.0), 3.0, "", "a value of its own type"},
		{"[«», `[«», \"«»\"]`] | [1]", list("z", 1.0, "two"), list(1.0, "two"), "", "those of a literal behind another"},
		{"`«» «»`", list("1", "2"), nil, "not JSON", "two values are no value"},
		{"` «» `", list("[1]"), list(1.0), "", "a value with spaces"},
		{"` «» `", list(list(1.0)), list(1.0), "", "a value that is no text"},
		{"`«»`", list("text"), nil, "not JSON", "text that is no JSON"},
		{"`\"\\\"«»\"`", list(`"`), `""`, "", "behind a quote that does not end the text"},
		{"`[\"x\", «»]`", list("\"y\""), list("x", "y"), "", "behind a text"},
		{"`[\"\\\\\", «»]`", list("\"y\""), list(`\`, "y"), "", "behind one that ends in a backslash"},
		{"`\"a\\`«»\"`", list("b"), "a`b", "", "behind a backtick"},
		{"`«»\\\\`", list("1"), nil, "not JSON", "in front of a backslash"},
		{"`\"\\«»\"`", list("n"), "\n", "", "behind a backslash it is escaped"},
		{"`\"\\«»\"`", list(`"`), nil, "not JSON", "and ends no text"},
		{"'«»\\\\'", list("x"), nil, "' is not closed", "two backslashes do not end a string"},
		{"'a\\«»'", list("x"), `a\x`, "", "a backslash in front of a hole"},
		{"'a«»b'", list("x"), "axb", "", "between others"},
		{"'a\\'«»'", list("x"), "a'x", "", "behind a quote that is escaped"},
		{"@.\"a\\\\«»\"", list("x"), "backslash", "", "behind a backslash in a key"},
		{"«»'", list("x"), nil, "' is not closed", "an end that has no beginning"},
		{"'«»", list("x"), nil, "' is not closed", "a beginning that has no end"},
		{"'«»\\", list("x"), nil, "' is not closed", "a backslash at the end"},
		{"'«»\uE000'", list("x"), nil, "not allowed", "a mark"},
		{"'«»\uE001'", list("x"), nil, "not allowed", "the mark of an end"},
		{"«» == a\uE001", list("x"), nil, "not allowed", "outside of quotes"},
		{"[own, '«»'] | [0]", list("x"), "\uE0000\uE001", "", "a mark in data is data"},
		{"'«»'", list("\uE0000\uE001"), "\uE0000\uE001", "", "in a value, too"},
		{"[`\"\\ue000x\\ue001\"`, '«»'] | [0]", list("x"), nil, "a marker is broken", "a mark that is written with an escape"},
		{"[`\"\\ue0001\\ue001\"`, '«»'] | [0]", list("x"), nil, "a marker is broken", "of a hole that there is not"},
		{"[`\"\\ue000-1\\ue001\"`, '«»'] | [0]", list("x"), nil, "cannot be evaluated", "of one before the first"},
		{"[items[1099511627777], '«»'] | [0]", list("x"), nil, "an index is out of range", "an index that looks like one"},
	})
}

// TestHolesAreBounded has values that are as large as can be, and larger.
func TestHolesAreBounded(t *testing.T) {
	full := strings.Repeat("x", 2<<20)
	many := make([]any, 600_000) // few bytes of JSON, and many values
	objects := make([]any, 30_000)
	for i := range objects {
		objects[i] = map[string]any{}
	}
	quoted := func(n int) string { return `"` + full[:n-2] + `"` }
	fill(t, map[string]any{"objects": objects}, []filling{
		{"objects[:3000].«»", list("a.b"), []any{}, "", "a path for each of some"},
		{"objects[].«»", list("a.b"), nil, "exceeds the bound of 16777216", "for each of many"},
		{"'«»'", list(full), full, "", "a text"},
		{"'«»'", list(full + "x"), nil, "exceeds the bound of 2097152", "too long a text"},
		{"'«»«»'", list(full, "x"), nil, "exceeds the bound of 2097152", "too long a text of two"},
		{"'«»'", list(many), nil, "exceeds the bound of 8388608", "too many values for a text"},
		{"`«»`", list(quoted(2 << 20)), full[:2<<20-2], "", "a literal"},
		{"`«»`", list(quoted(2<<20 + 2)), nil, "exceeds the bound of 2097152", "too long a literal"},
		{"`\"«»\"`", list(full[:2<<20-2]), full[:2<<20-2], "", "a text in a literal"},
		{"`\"«»\"`", list(full), nil, "a literal of 2097153 exceeds the bound", "too long a one"},
		{"`[1«»`", list(strings.Repeat(" ", 2<<20-3) + "]"), list(1.0), "", "a literal with its end"},
		{"`[1«»`", list(strings.Repeat(" ", 2<<20-2) + "]"), nil, "exceeds the bound of 2097152", "too far off"},
		{"`[«»]`", list(many), nil, "exceeds the bound of 8388608", "too many values for a literal"},
	})
}

// TestHolesAreNotReadInVain: a refused expression does not read its holes first.
func TestHolesAreNotReadInVain(t *testing.T) {
	expression := "[" + strings.TrimPrefix(strings.Repeat(",`«»`", 12), ",") + "] | length(@)"
	query, err := newEngine(t).CompilePieces(holed(expression))
	if err != nil {
		t.Fatal(err)
	}
	allocated := func(work func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		work()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for size, read := range map[int]uint64{100: 12, 1 << 20: 2} {
		text := "[" + strings.Repeat("1,", size/2) + "1]"
		values := make([]any, 12)
		for i := range values {
			values[i] = text
		}
		one := allocated(func() {
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				t.Error(err)
			}
		})
		took := allocated(func() {
			if _, err := query.Search(nil, values...); errors.Is(err, jmespath.ErrTooLarge) != (size > 100) {
				t.Errorf("12 literals of %d bytes: %v", size, err)
			}
		})
		if most := read*one + 1<<20; took > most {
			t.Errorf("12 literals of %d bytes took %d bytes, want at most %d, that is %d of them read", size, took, most, read)
		}
	}
}
