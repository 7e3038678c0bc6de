package jmespath_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// doubled is a value of 2^k leaves that takes k words of memory.
func doubled(k int) string { return "`1`" + strings.Repeat(" | [@,@]", k) }

// numbers is a JSON literal of n numbers.
func numbers(n int) string { return "`[" + strings.Repeat("0,", n-1) + "0]`" }

// TestWorkIsBounded has expressions that a tenant can write. The attack and its
// twin differ in size alone.
func TestWorkIsBounded(t *testing.T) {
	stars := func(k int) string { return strings.Repeat("[*]", k) }
	text := map[string]any{"s": strings.Repeat("é", 1<<17), "b": strings.Repeat("a", 1<<20), "x": strings.Repeat("é", 100), "y": strings.Repeat("a", 100)}
	for _, c := range []struct {
		reason       string
		data         any
		attack, twin string
	}{
		{"projections of a value that doubles", text, doubled(23) + " | length(" + stars(23) + ")", doubled(9) + " | length(" + stars(9) + ")"},
		{"60 times", text, doubled(60) + " | length(" + stars(60) + ")", doubled(9) + " | length(" + stars(9) + ")"},
		{"map", text, doubled(23) + " | map(&@" + stars(22) + ", @) | length(@)", doubled(9) + " | map(&@" + stars(8) + ", @) | length(@)"},
		{"slices", text, doubled(23) + " | length(" + strings.Repeat("[::1]", 23) + ")", doubled(9) + " | length(" + strings.Repeat("[::1]", 9) + ")"},
		{"filters", text, doubled(23) + " | length(" + strings.Repeat("[?@]", 23) + ")", doubled(9) + " | length(" + strings.Repeat("[?@]", 9) + ")"},
		{"values", text, strings.Repeat("{a:@,b:@} | ", 23) + "length(" + strings.TrimPrefix(strings.Repeat(".*", 23), ".") + ")", strings.Repeat("{a:@,b:@} | ", 9) + "length(" + strings.TrimPrefix(strings.Repeat(".*", 9), ".") + ")"},
		{"an error that the library takes for null", text, doubled(23) + " | (" + stars(23) + " | [?@]) || 'nothing'", doubled(3) + " | (" + stars(3) + " | [?@]) || 'nothing'"},
		{"lists of lists", text, numbers(20000) + "[*].[" + numbers(9000) + "][] | [] | length(@)", numbers(200) + "[*].[" + numbers(200) + "][] | [] | length(@)"},
		{"objects", text, numbers(30000) + "[*].{a:@,b:{c:@}}[*].[{a:@},{a:@}] | length(@)", numbers(3000) + "[*].{a:@,b:{c:@}} | length(@)"},
		{"items", text, numbers(30000) + " | items(@,'a','b') | items(@,'a','b') | length(@)", numbers(3000) + " | items(@,'a','b') | items(@,'a','b') | length(@)"},
		{"comparisons", text, numbers(9000) + "[*].[" + numbers(9000) + "][] | [?@ == " + numbers(9000) + "] | length(@)", numbers(90) + "[*].[" + numbers(90) + "][] | [?@ == " + numbers(90) + "] | length(@)"},
		{"comparisons of sums", text, doubled(30) + " | @ == [@]", doubled(9) + " | @ == [@]"},
		{"long keys", text, "[b, b, b, b, b, b, b, b, b, b] | sort_by([@,@,@,@][], &join('', [@, 'x'])) | length(@)", "[y, y, y, y, y] | sort_by([@,@,@,@][], &join('', [@, 'x'])) | length(@)"},
		{"best of long keys", text, "[b, b, b, b, b, b, b, b, b, b] | length(max_by([@,@,@,@][], &join('', [@, 'x'])))", "[y, y, y, y, y] | length(max_by([@,@,@,@][], &join('', [@, 'x'])))"},
		{"long strings", text, "[b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b] | sort(@) | length(@)", "[y, y, y] | sort(@) | length(@)"},
		{"the longest of strings", text, "[b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b] | length(max(@))", "[y, y, y] | length(max(@))"},
		{"a string in many", text, "[[b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b], join('',[b, ''])] | contains([0], [1])", "[[y, y, y], join('',[y, 'a'])] | contains([0], [1])"},
		{"many strings made", text, numbers(3000) + "[*].reverse(join('', ['" + strings.Repeat("a", 9000) + "'])) | length(@)", numbers(30) + "[*].reverse(join('', ['" + strings.Repeat("a", 9000) + "'])) | length(@)"},
		{"large texts of small ones", text, numbers(30) + "[*].replace_all('" + strings.Repeat("a", 2000) + "', 'a', '" + strings.Repeat("b", 1000) + "') | length(@)", numbers(3) + "[*].replace_all('" + strings.Repeat("a", 2000) + "', 'a', '" + strings.Repeat("b", 1000) + "') | length(@)"},
		{"texts that are looked at", text, "[" + strings.Repeat("b, ", 17) + "b] | [*].starts_with(@, 'b') | length(@)", "[" + strings.Repeat("y, ", 17) + "y] | [*].starts_with(@, 'b') | length(@)"},
		{"documents", text, "[join('', ['[', replace_all(b, 'a', '0,'), '0]'])] | [parse_json([0]), parse_json([0])] | length(@)", "[join('', ['[', replace_all(y, 'a', '0,'), '0]'])] | [parse_json([0]), parse_json([0])] | length(@)"},
		{"parts", text, "length(split(b, ''))", "length(split(y, ''))"},
		{"trimming by many characters", text, "trim(s, s)", "trim(x, x)"},
		{"a wildcard", text, "pattern_match(replace_all(s, 'é', '?'), s)", "pattern_match(replace_all(x, 'é', '?'), x)"},
		{"a regular expression that repeats", text, "regex_match('" + strings.Repeat("(a{1000})", 800) + "', y)", "regex_match('(a{10}){10}', y)"},
		{"repeats of repeats", text, "regex_match('((a{10}){10}){10}" + strings.Repeat("(a?){1000}", 9) + "', y)", "regex_match('(a?){100}', y)"},
		{"a regular expression on a long text", text, "regex_match('(a?){100}b', b)", "regex_match('(a?){100}b', join('', [y, 'b'])) && `1`"},
		{"an array of members", text, numbers(20000) + "[*].merge(`{\"a\":1}`, `{\"b\":2}`) | [*].merge(@, `{\"c\":3}`) | length(@)", numbers(900) + "[*].merge(`{\"a\":1}`, `{\"b\":2}`) | length(@)"},
		{"a long name for each", map[string]any{"o": slices.Repeat([]any{map[string]any{}}, 30_000)}, "o[*]." + strings.Repeat("k", 60_000), "o[*].k"},
		{"a deep tree", text, "b" + strings.Repeat(" | @", 2000), "b" + strings.Repeat(" | @", 200)},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := search(t, c.attack, c.data)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, jmespath.ErrTooLarge) {
				t.Errorf("the attack: %v", err)
			} else if len(err.Error()) > 1000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 96 {
				t.Errorf("it took %d MiB", took)
			}
			if got, err := search(t, c.twin, c.data); err != nil || got == nil {
				t.Errorf("the twin: %v, %v", got, err)
			}
		})
	}
}

func TestHolesAreWorkToo(t *testing.T) {
	for _, c := range []struct {
		reason, before, after string
	}{
		{"text", "'", "'"}, {"JSON", "`[", "]`"}, {"text in JSON", "`\"", "\"`"},
	} {
		for size, refused := range map[int]bool{100: false, 1 << 20: true} {
			var pieces []jmespath.Piece
			var holes []any
			for range 30 {
				pieces = append(pieces, jmespath.Piece{Text: ", " + c.before}, jmespath.Piece{Hole: true}, jmespath.Piece{Text: c.after})
				holes = append(holes, strings.Repeat("1,", size/2)+"1")
			}
			pieces[0].Text = "[" + c.before
			pieces = append(pieces, jmespath.Piece{Text: "] | length(@)"})
			query, err := newEngine(t).CompilePieces(pieces)
			if err != nil {
				t.Fatal(err)
			}
			got, err := query.Search(map[string]any{}, holes...)
			if errors.Is(err, jmespath.ErrTooLarge) != refused || !refused && got != 30.0 {
				t.Errorf("30 holes of %d bytes as %s: %v, %.300v", size, c.reason, got, err)
			}
		}
	}
}

// TestMessagesAreShort has errors that could hold the data.
func TestMessagesAreShort(t *testing.T) {
	digits := strings.Repeat("1", 1<<20)
	for _, expression := range []string{
		"`1`" + strings.Repeat(" | [@,@]", 40) + " | abs(@)",
		"`1`" + strings.Repeat(" | [@,@]", 40) + " | max(@)",
		"parse_json(@)", "parse_yaml(join('', ['a: [', @]))", "to_boolean(@)", "time_utc(@)", "add(@, `1`)", "semver_compare(@, @)", "image_normalize(@)", "is_external_url(@)",
		"base64_decode(join('', ['!', @]))", "time_parse(@, 'x')", "divide(@, '1Mi')", "random(@)", "regex_match(@, 'x')", "time_add('2023-01-12T12:37:56Z', @)", "x509_decode(@)",
	} {
		if _, err := search(t, expression, digits); err == nil || len(err.Error()) > 2000 {
			t.Errorf("%.60s: %.300v", expression, err)
		}
	}
	query, err := newEngine(t).CompilePieces([]jmespath.Piece{{Text: "`["}, {Hole: true}, {Text: "]`"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query.Search(nil, digits); err == nil || len(err.Error()) > 2000 {
		t.Errorf("a literal: %.300v", err)
	}
}

// TestABudgetIsForOneEvaluation runs one query again after it was refused.
func TestABudgetIsForOneEvaluation(t *testing.T) {
	query, err := newEngine(t).Compile("length([*][*][*])")
	if err != nil {
		t.Fatal(err)
	}
	large := list()
	for range 9000 {
		large = append(large, "x")
	}
	small := list(list("x", list("y")))
	large = list(large, large, large, large, large, large, large, large, large, large)
	for range 9 {
		if _, err := query.Search(list(large, large, large, large, large, large, large, large, large)); !errors.Is(err, jmespath.ErrTooLarge) {
			t.Fatalf("the large one: %v", err)
		}
		if got, err := query.Search(small); err != nil || got != 1.0 {
			t.Fatalf("the small one: %v, %v", got, err)
		}
	}
}

// TestExpressionsStandWhereTheyAreTaken keeps & out of values.
func TestExpressionsStandWhereTheyAreTaken(t *testing.T) {
	data := list(map[string]any{"n": 2.0, "s": "b"}, map[string]any{"n": 1.0, "s": "a"}, map[string]any{"n": 2.0, "s": "c"})
	for _, c := range []struct{ expression, want, refusal string }{
		{"map(&n, @)", "[2,1,2]", ""},
		{"map(n, @)", "", "want an expression"},
		{"[&n] | map([0], @)", "", "& is only for"},
		{"to_string(&n)", "", "& is only for"},
		{"map(&missing, @)", "[null,null,null]", ""},
		{"map(&n, 'x')", "", "want an array, got a string"},
		{"map(&n)", "", "want 2 arguments, got 1"},
		{"sort_by(@, &n)[*].s", `["a","b","c"]`, ""},
		{"sort_by(@, &s)[*].n", "[1,2,2]", ""},
		{"sort_by(@, n)", "", "want an expression"},
		{"sort_by('x', &n)", "", "sort_by: argument 1: want an array, got a string"},
		{"sort_by(@, &missing)", "", "want a string or a number, got null"},
		{"max_by(@, &missing)", "", "max_by: the key of item 0: want a string or a number, got null"},
		{"min_by(@, &not_null((s == 'a' && n) || s))", "", "want a string as the first has, got a number"},
		{"sort_by(@, &not_null((s == 'a' && n) || s))", "", "want a string as the first has, got a number"},
		{"max_by(@, &n).s", `"b"`, ""},
		{"min_by(@, &n).s", `"a"`, ""},
		{"max_by(@, &s).s", `"c"`, ""},
		{"min_by(`[]`, &s)", "null", ""},
		{"max_by([0:1], &missing).s", `"b"`, ""},
		{"sort_by([0:1], &missing)[0].s", `"b"`, ""},
		{"max(@[*].s)", `"c"`, ""},
		{"max(@)", "", "all numbers or all strings, got an object"},
		{"sort(@[*].n)", "[1,2,2]", ""},
		{"sort([n, s])", "[]", "got null"},
		{"avg(@[*].n) > `1`", "true", ""},
		{"avg(@[*].s)", "", "want a number, got a string"},
		{"merge(@[0], {n: `5`}).n", "5", ""},
		{"merge()", "", "want 1 arguments, got 0"},
		{"merge(@[0], `1`)", "", "argument 2: want an object, got a number"},
		{"not_null(`null`, 'x')", `"x"`, ""},
		{"length(`1`)", "", "want a string or an array or an object, got a number"},
		{"contains(@[*].s, 'a')", "true", ""},
		{"to_array('x')", `["x"]`, ""},
		{"@[0] == @[2]", "false", ""},
		{"@[0] == {n: `2`, s: 'b'}", "true", ""},
		{"type(@[0].missing)", `"null"`, ""},
	} {
		got, err := search(t, c.expression, data)
		if c.refusal != "" {
			if err == nil || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("%s: %v, %v: want %q", c.expression, got, err, c.refusal)
			}
			continue
		}
		var want any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v, %v; want %s", c.expression, got, err, c.want)
		}
	}
}

func BenchmarkShapes(b *testing.B) {
	container := map[string]any{"name": "web", "image": "nginx", "ports": list(80.0, 443.0)}
	data := map[string]any{"containers": list(container, container, container), "a": "x", "b": "x"}
	for _, expression := range []string{
		"a", "a == 'x'", "a == b", "containers[*].name", "containers[].ports[]", "containers[?name == 'web'].image | [0]",
		"length(containers)", "to_upper(a)", "contains(containers[*].name, 'web')", "sort_by(containers, &name)[0].name", "regex_match('^[a-z]+$', a)",
		"{a: a, b: b}",
	} {
		query, err := newEngine(b).Compile(expression)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(strings.ReplaceAll(expression, " ", ""), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := query.Search(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
