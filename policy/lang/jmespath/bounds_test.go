package jmespath_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// judgement is an expression with what comes of it, or with the words that it is refused with.
type judgement struct {
	expression string
	want       any
	refusal    string
	reason     string
}

func judge(t *testing.T, data any, rows []judgement) {
	t.Helper()
	for _, c := range rows {
		got, err := search(t, c.expression, data)
		switch {
		case c.refusal != "" && (err == nil || !strings.Contains(err.Error(), c.refusal)):
			t.Errorf("%.80s = %.80v, %v; want %q: %s", c.expression, got, err, c.refusal, c.reason)
		case c.refusal == "" && (err != nil || !reflect.DeepEqual(got, c.want)):
			t.Errorf("%.80s = %.80v, %v; want %.80v: %s", c.expression, got, err, c.want, c.reason)
		}
	}
}

func TestParseQuantity(t *testing.T) {
	for _, c := range []struct {
		text   string
		fits   bool // within the bounds
		reason string
	}{
		{strings.Repeat("0", 63) + "1", true, "as long as can be"},
		{strings.Repeat("0", 64) + "1", false, "one more"},
		{"1e24", true, "the greatest exponent"},
		{"1e25", false, "a greater one"},
		{"1e-24", true, "the least exponent"},
		{"1e-25", false, "a lesser one"},
		{"1E25", false, "in capitals"},
		{"e25", false, "of nothing"},
		{"100", true, "a number without any"},
		{"1E", true, "a unit is no exponent"},
		{"1.5Ki", true, "a fraction"},
	} {
		if got, err := jmespath.ParseQuantity(c.text); (err == nil) != c.fits || !c.fits && !errors.Is(err, jmespath.ErrTooLarge) {
			t.Errorf("%s = %v, %v: %s", c.text, &got, err, c.reason)
		}
	}
}

func TestArithmetic(t *testing.T) {
	const infinite = "multiply(`1e308`, `10`)"
	const none = "subtract(" + infinite + ", " + infinite + ")"
	judge(t, nil, []judgement{
		{"add(`[]`, `1`)", nil, "argument 1: an array is no number", "a list"},
		{"add(`1`, 'pear')", nil, "argument 2", "the second is none"},
		{"subtract('pear', `1`)", nil, "argument 1", "nothing to subtract from"},
		{"subtract('1Mi', '1h')", nil, "do not go together", "a duration from a quantity"},
		{"multiply('pear', `2`)", nil, "argument 1", "nothing to multiply"},
		{"divide('pear', `2`)", nil, "argument 1", "nothing to divide"},
		{"modulo('pear', `2`)", nil, "argument 1", "nothing that leaves a remainder"},

		{"sum(`[\"007\"]`)", "007", "", "a single one is returned as it is"},
		{"sum(`[\"pear\", 1]`)", nil, "item 0", "the first is none"},
		{"sum(`[1, \"pear\"]`)", nil, "item 1", "the last is none"},
		{"sum(`[\"1Mi\", \"1h\"]`)", nil, "item 1: a quantity and a duration", "units differ"},

		{"multiply('1', `1000000000000000000`)", "1E", "", "the greatest number that a quantity takes"},
		{"multiply('1', `1000000000000000200`)", nil, "out of range", "a greater one"},
		{"multiply(`-1000000000000000200`, '1')", nil, "out of range", "a lesser one, in front"},
		{"multiply('1', " + infinite + ")", nil, "out of range", "a number without end"},
		{"multiply('1', " + none + ")", nil, "out of range", "a value that is no number"},
		{"multiply('1', `1`)", "1", "", "a quantity by a number"},
		{"multiply('1', `2000000000000000000`)", nil, "out of range", "by too great a one"},
		{"divide('1', `2000000000000000000`)", nil, "out of range", "through too great a one"},

		{"multiply('1ns', `9223372036854774784`)", "2562047h47m16.854774784s", "", "the longest duration"},
		{"multiply('1ns', `9223372036854775808`)", nil, "out of range", "a longer one"},
		{"multiply('1s', " + infinite + ")", nil, "out of range", "without end"},
		{"multiply('1s', " + none + ")", nil, "out of range", "times a value that is no number"},
		{"add('2540000h', '400h')", "2540400h0m0s", "", "long together"},
		{"multiply('2540400h', `9e15`)", nil, "out of range", "too many seconds more"},
		{"add('2540400h', '2540400h')", nil, "out of range", "too long together"},
		{"divide('1h', `1e-300`)", nil, "out of range", "through nearly nothing"},

		{"multiply('1s', '1s')", nil, "do not go together", "no square of durations"},
		{"divide('1h', '1Mi')", nil, "do not go together", "a duration through a quantity"},
		{"divide('1Mi', '1h')", nil, "do not go together", "a quantity through a duration"},
		{"divide(`1`, '1Mi')", nil, "do not go together", "a number through a quantity"},
		{"divide(`1`, '1h')", nil, "do not go together", "a number through a duration"},
		{"divide('1', '3')", 1.0 / 3, "", "a number of quantities"},
		{"divide('10', '1Gi')", 10.0 / (1 << 30), "", "a small number of them"},
		{"divide('10', `3`)", "3", "", "a quantity is rounded down to the digits that are written"},
		{"divide('-10', `3`)", "-3", "", "toward zero"},
		{"divide('1.50', `4`)", "370m", "", "two digits here"},
		{"subtract('5', `2`)", nil, "a quantity and a number", "a number from a quantity"},
		{"subtract(`5`, '2h')", nil, "a number and a duration", "a duration from a number"},
		{"add('5', `2`)", nil, "a quantity and a number", "a number to a quantity"},
		{"add(`2`, '1h')", nil, "a number and a duration", "a duration to a number"},
		{"sum(`[1, \"1Mi\"]`)", nil, "item 1: a number and a quantity", "nor in a list"},
		{"sum(`[]`)", nil, "at least one element", "the sum of nothing is no number below a limit"},
		{"modulo('1.5', '1')", nil, "whole numbers", "no remainder of part of a quantity"},
		{"modulo('3', '500m')", nil, "whole numbers", "nor through part of one"},
		{"modulo('-7', '3')", "-1", "", "a remainder of quantities has the sign of the dividend, too"},
		{"divide('1h', `0`)", nil, "division by zero", "a duration through zero"},
		{"divide('1h', '0s')", nil, "division by zero", "through no time"},
		{"divide('1Mi', `0`)", nil, "division by zero", "a quantity through zero"},
		{"modulo('1Mi', `1`)", nil, "do not go together", "no remainder between units"},
		{"modulo(`1`, `0`)", nil, "division by zero", "no remainder of zero"},
		{"modulo('1Mi', '0')", nil, "division by zero", "nor of no quantity"},
		{"modulo(`1`, `1.5`)", nil, "whole numbers", "no remainder of a fraction"},
		{"modulo(`-7`, `3`)", -1.0, "", "a remainder has the sign of the dividend"},

		{"round(`1.25`, `1`)", 1.3, "", "half is up"},
		{"round(`1`, `1.5`)", nil, "whole number of places", "half a place"},
		{"round(`1e300`, `300`)", 1e300, "", "more places than there are"},
		{"to_string(" + infinite + ")", nil, "out of range", "what JSON has no number for"},
	})
}

// TestTextBounds has texts that are as long as can be, and one longer.
func TestTextBounds(t *testing.T) {
	full := strings.Repeat("x", 2<<20)
	data := map[string]any{"full": full, "more": full + "x", "half": full[:1<<20], "rest": full[:1<<20] + "x", "a": strings.Repeat("a", 2048), "b": strings.Repeat("b", 1024)}
	long := func(n int) string { return "1.0.0-" + strings.Repeat("a", n-6) }
	judge(t, data, []judgement{
		{"length(to_upper(full))", float64(2 << 20), "", "an argument"},
		{"to_upper(more)", nil, "a string of 2097153 exceeds the bound", "too long an argument"},
		{"length(join('', [half, half]))", float64(2 << 20), "", "joined"},
		{"join('', [half, rest])", nil, "the result of 2097153 exceeds the bound", "joined too long"},
		{"length(replace_all(a, 'a', b))", float64(2 << 20), "", "replaced"},
		{"replace_all(join('', [a, 'a']), 'a', b)", nil, "exceeds the bound", "too much in its place"},
		{"replace(a, 'a', join('', [b, b]), `-1`)", nil, "exceeds the bound", "less than none are all"},
		{"replace(a, 'a', join('', [b, b]), `0`) == a", true, "", "none are none"},
		{"length(replace(a, 'a', join('', [b, b]), `3`))", 2048.0 + 3*2047, "", "some of many"},
		{"length(replace('a', 'a', b, `9000`))", 1024.0, "", "more often than it is there"},
		{"length(regex_replace_all_literal('a', a, b))", float64(2 << 20), "", "replaced by an expression"},
		{"regex_replace_all_literal('a', join('', [a, 'a']), b)", nil, "the result of 2098176 exceeds the bound", "too much in its place"},
		{"semver_compare('" + long(8192) + "', '1.0.0')", false, "", "a version"},
		{"semver_compare('" + long(8193) + "', '1.0.0')", nil, "a version of 8193 exceeds the bound", "too long a version"},
		{"semver_compare('1.0.0', '<" + long(8191) + "')", false, "", "a range"},
		{"semver_compare('1.0.0', '<" + long(8192) + "')", nil, "a version of 8193 exceeds the bound", "too long a range"},
		{"length(random('a{1000}'))", 1000.0, "", "a text made up"},
	})
}

func TestTimesAreRead(t *testing.T) {
	const early, noon, late = "'2023-01-01T00:00:00Z'", "'2023-01-01T12:00:00Z'", "'2023-01-02T00:00:00Z'"
	judge(t, nil, []judgement{
		{"time_between(" + noon + ", " + early + ", " + late + ")", true, "", "between"},
		{"time_between(" + early + ", " + noon + ", " + late + ")", false, "", "before"},
		{"time_between(" + late + ", " + early + ", " + noon + ")", false, "", "after"},
		{"time_between(" + early + ", " + early + ", " + late + ")", false, "", "at the start"},
		{"time_between(" + late + ", " + early + ", " + late + ")", false, "", "at the end"},
		{"time_before(" + noon + ", " + noon + ")", false, "", "not before itself"},
		{"time_after(" + noon + ", " + noon + ")", false, "", "nor after"},
		{"time_between('x', " + early + ", " + late + ")", nil, "argument 1", "no time between"},
		{"time_between(" + noon + ", " + early + ", 'x')", nil, "argument 3", "no end"},
		{"time_before('x', " + noon + ")", nil, "argument 1", "no time before"},
		{"time_after(" + noon + ", 'x')", nil, "argument 2", "nothing to be after"},
		{"time_diff(" + noon + ", 'x')", nil, "argument 2", "nothing to differ from"},
		{"time_since('', " + early + ", " + late + ")", "24h0m0s", "", "since then"},
		{"time_since('', " + early + ", 'x')", nil, "the end", "until no time"},
		{"time_to_cron('x')", nil, "RFC 3339", "no time to repeat"},
		{"time_add('x', '1h')", nil, "RFC 3339", "nothing to add to"},
		{"time_truncate('x', '1h')", nil, "RFC 3339", "nothing to truncate"},
		{"time_truncate(" + noon + ", 'x')", nil, "the duration", "no duration"},
		{"time_parse('1', '0')", "1970-01-01T00:00:00Z", "", "seconds"},
		{"time_parse('1', 'x')", nil, "no number of seconds", "no seconds"},
		{"time_parse('2006', '2023')", "1970-01-01T00:33:43Z", "", "a year is a number of seconds, too"},
		{"time_parse('2006-01-02', 'x')", nil, "the time", "not of that layout"},
	})
}

func TestCollections(t *testing.T) {
	judge(t, map[string]any{"labels": map[string]any{"a": "1", "none": nil}, "l": list("zero", "one"), "first": list(map[string]any{"text": "inner"}), "text": "outer"}, []judgement{
		{"first[0].text", "inner", "", "a member of an element is none of the whole"},
		{"first[0].text || 'none'", "inner", "", "with something in its place"},
		{"text.first[0] || 'none'", "none", "", "nor is the whole's one of a text"},
		{"label_match(`{\"a\":1}`, labels)", false, "", "a number is no text"},
		{"label_match(`{\"a\":1}`, `{\"a\":1.0}`)", true, "", "a number"},
		{"label_match(`{\"a\":true}`, `{\"a\":\"true\"}`)", false, "", "a boolean is no text"},
		{"label_match(`{\"a\":true}`, `{\"a\":true}`)", true, "", "a boolean"},
		{"label_match(`{\"none\":null}`, labels)", true, "", "nothing is nothing"},
		{"label_match(`{\"a\":null}`, `{\"a\":\"null\"}`)", false, "", "nothing is no text"},
		{"label_match(`{\"a\":[1]}`, `{\"a\":\"[1]\"}`)", false, "", "a list is no text"},
		{"label_match(`{\"a\":[1]}`, `{\"a\":[1]}`)", true, "", "a list"},
		{"label_match(`{\"other\":null}`, labels)", false, "", "a missing label is not null"},
		{"lookup(l, `0`)", "zero", "", "the first"},
		{"lookup(l, `1`)", "one", "", "the last"},
		{"lookup(l, `2`)", nil, "", "one more"},
		{"lookup(l, `-1`)", nil, "", "one less"},
		{"lookup(l, `0.5`)", nil, "whole number", "between two"},
		{"items(l, 'k', 'v') | [1]", map[string]any{"k": 1.0, "v": "one"}, "", "of a list"},
		{"object_from_lists(`[\"a\",\"b\"]`, `[1,2,3]`)", map[string]any{"a": 1.0, "b": 2.0}, "", "more values than keys"},
		{"sort(`[2,1]`)", list(1.0, 2.0), "", "numbers"},
		{"sort(`[1,\"a\"]`)", nil, "item 1: want all numbers or all strings, got a string", "numbers and strings"},
		{"sort(`[true]`)", nil, "item 0: want all numbers or all strings, got a boolean", "neither"},
		{"max(`[]`)", nil, "", "of none"},
		{"avg(`[1,2]`)", 1.5, "", "of numbers"},
		{"avg(`[1,\"a\"]`)", nil, "item 1: want a number, got a string", "of others, too"},
		{"l.*", nil, "", "members of a list"},
		{"labels.none.*", nil, "", "members of nothing"},
		{"labels.*", list("1"), "", "members, without null"},
		{"contains('abc', 'b')", true, "", "a text in a text"},
		{"reverse('abc')", "cba", "", "a text"},
		{"reverse(l)", list("one", "zero"), "", "a list"},
		{"truncate('abc', `0`)", "", "", "to nothing"},
		{"to_boolean('TRUE')", true, "", "in capitals"},
		{"regex_match('(a{2}', 'x')", nil, "missing closing", "an expression that repeats, and is none"},
		{"regex_replace_all('(', 'a', 'b')", nil, "missing closing", "no expression to replace"},
		{"base64_encode('')", "", "", "nothing"},
	})
}

// TestWorkAtItsBounds covers values that are refused for their size, and the largest allowed ones.
func TestWorkAtItsBounds(t *testing.T) {
	numbers := make([]any, 100_000)
	for i := range numbers {
		numbers[i] = 0.0
	}
	words := make([]any, 16_000)
	for i := range words {
		words[i] = strings.Repeat("x", 1000)
	}
	full := 8 << 20 // of a result
	text := strings.Repeat("x", full)
	judge(t, map[string]any{
		"n": numbers, "m": append(numbers[:len(numbers):len(numbers)], 0.0), "commas": strings.Repeat(",", 199_999), "words": words,
		"a": strings.Repeat("a", 5000), "half": list(text[:4<<20-32]), "more": list(text[:4<<20-31]),
	}, []judgement{
		{"[n, n][] | length(@)", 200_000.0, "", "a list of lists"},
		{"[n, m][] | length(@)", nil, "a list of 200001 exceeds the bound", "one too many"},
		{"length(split(commas, ','))", 200_000.0, "", "parts"},
		{"length(split(join('', [commas, ',']), ','))", nil, "a list of 200001 exceeds the bound", "one too many"},
		{"regex_match('" + strings.Repeat("a", 4999) + "', 'x')", false, "", "a regular expression"},
		{"regex_match('" + strings.Repeat("a", 5000) + "', 'x')", nil, "exceeds the bound of 10000", "a longer one"},
		{"regex_match('" + strings.Repeat("a", 8193) + "', 'x')", nil, "a regular expression of 8193 exceeds the bound of 8192", "the longest"},
		{"length(random('[" + strings.Repeat("a", 8190) + "]'))", 1.0, "", "a pattern to make a text of"},
		{"random('[" + strings.Repeat("a", 8191) + "]')", nil, "the pattern of 8193 exceeds the bound", "a longer one"},
		{"random('" + strings.Repeat("[a-z]{1000}", 5) + "')", nil, "the result exceeds the bound of 4096", "too long a text made"},
		{"pattern_match(join('', [a, '*']), a)", true, "", "a long wildcard without alternatives"},
		{"length(words[?@ == 'y'])", 0.0, "", "a text that is written out is compared with each for nothing"},
		{"to_string(half) == 'x'", false, "", "a value as text"},
		{"to_string(more) == 'x'", nil, "the value exceeds the bound of 4194304 bytes", "one larger"},
		{"words[:6000] | [?@ == @] | length(@)", 6000.0, "", "texts are compared as texts"},
		{"@" + strings.Repeat(" | @", 1024) + " | length(@)", nil, "the depth of the expression", "too deep"},
		{"@" + strings.Repeat(" | @", 1023) + " | length(@)", 7.0, "", "as deep as can be"},
		{strings.Repeat("(", 256) + "commas" + strings.Repeat(")", 256) + " | length(@)", 199_999.0, "", "brackets"},
		{strings.Repeat("(", 257) + "commas" + strings.Repeat(")", 257), nil, "nesting of 257 exceeds the bound", "one more"},
		{"'" + strings.Repeat("x", 64<<10-2) + "'", strings.Repeat("x", 64<<10-2), "", "the longest expression"},
		{"'" + strings.Repeat("x", 64<<10-1) + "'", nil, "the length of 65537 exceeds the bound", "a longer one"},
	})
	for _, c := range []struct {
		result any
		fits   bool
		reason string
	}{
		{list(text[:full-32]), true, "one long text"},
		{list(text[:full-31]), false, "a longer one"},
		{list(text[:full-48], ""), true, "and an empty one"},
		{list(text[:full-48], "x"), false, "and a short one"},
		{list(text[:full-32], nil), false, "and nothing"},
		{list(list(text[:full-48]), nil), false, "and nothing beside the list"},
		{map[string]any{"k": text[:full-33]}, true, "a member"},
		{map[string]any{"k": text[:full-32]}, false, "a longer one"},
	} {
		if _, err := search(t, "@", c.result); (err == nil) != c.fits || err != nil && !errors.Is(err, jmespath.ErrTooLarge) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	for expression, fits := range map[string]bool{"exact": true, "over": false, "exact || 'x'": true, "over || 'x'": false} {
		if _, err := search(t, expression, map[string]any{"exact": text[:full-16], "over": text[:full-15]}); (err == nil) != fits || err != nil && !errors.Is(err, jmespath.ErrTooLarge) {
			t.Errorf("%s: %v", expression, err)
		}
	}
	for range 20 { // the order of members is another each time
		if _, err := search(t, "@", map[string]any{"a": text[:full-33], "b": nil}); !errors.Is(err, jmespath.ErrTooLarge) {
			t.Fatalf("two members: %v", err)
		}
	}
}

func TestReferencesAndHosts(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("ab", 32)
	judge(t, nil, []judgement{
		{"image_normalize('team/app')", "docker.io/team/app:latest", "", "a path is no host"},
		{"image_normalize('my.app')", "docker.io/my.app:latest", "", "a dot alone makes no host"},
		{"image_normalize('Reg/app')", nil, "repositories are in lower case", "capitals, which are no host either"},
		{"image_normalize('localhost/app:1')", "localhost/app:1", "", "a host without a dot"},
		{"image_normalize('reg.example/app')", "reg.example/app:latest", "", "one with a dot"},
		{"image_normalize('reg:5000/app')", "reg:5000/app:latest", "", "one with a port"},
		{"image_normalize('app" + digest + "')", "docker.io/app" + digest, "", "a digest"},
		{"image_normalize('')", nil, "is empty", "nothing"},
		{"is_external_url('http://[::1')", nil, "is malformed", "no URL"},
		{"is_external_url('http://8.8.8.8')", true, "", "a public address"},
		{"is_external_url('http://0.0.0.0')", false, "", "no address"},
		{"is_external_url('http://[::]')", false, "", "none of version 6"},
		{"is_external_url('http://[fd00::1]')", false, "", "a private one"},
		{"is_external_url('http://[fe80::1]')", false, "", "of the link"},
		{"is_external_url('http://224.0.0.1')", false, "", "of all on the link"},
		{"is_external_url('http://[::ffff:10.0.0.1]')", false, "", "one within another"},
	})
	alone, err := jmespath.New(jmespath.Options{Now: time.Now, Random: strings.NewReader(""), DefaultRegistry: "mirror.example"})
	if err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]any{
		"is_external_url('http://10.0.0.1')": false, "is_external_url('http://kyverno.example')": "names are not resolved here",
		"image_normalize('app')": "mirror.example/app:latest", "image_normalize('reg.example/app')": "reg.example/app:latest",
	} {
		query, err := alone.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := query.Search(nil); got != want && (err == nil || !strings.Contains(err.Error(), want.(string))) {
			t.Errorf("%s = %v, %v; want %v", expression, got, err, want)
		}
	}
}

func TestNormalizeEveryType(t *testing.T) {
	for _, c := range []struct {
		value, want any // nil means that it is refused
		reason      string
	}{
		{float32(1), 1.0, "float32"},
		{int32(1), 1.0, "int32"},
		{int64(1), 1.0, "int64"},
		{uint32(1), 1.0, "uint32"},
		{uint64(1), 1.0, "uint64"},
		{json.Number("1"), 1.0, "a number that is written out"},
		{json.Number("x"), nil, "one that is none"},
		{list(1, 2, 3), list(1.0, 2.0, 3.0), "each of a list"},
		{list(1, "a", list(2)), list(1.0, "a", list(2.0)), "lists in lists"},
		{list("a", list(1)), list("a", list(1.0)), "a converted value stays"},
		{map[string]any{"a": 1, "b": 2, "c": "x"}, map[string]any{"a": 1.0, "b": 2.0, "c": "x"}, "each member"},
		{map[string]any{"a": list(map[string]any{"b": 1})}, map[string]any{"a": list(map[string]any{"b": 1.0})}, "further down"},
		{map[string]any{"a": struct{}{}}, nil, "no JSON in a member"},
		{list(1, struct{}{}), nil, "no JSON in a list"},
	} {
		if got, err := jmespath.Normalize(c.value); (err == nil) != (c.want != nil) || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v became %v, %v; want %v: %s", c.value, got, err, c.want, c.reason)
		}
	}
}
