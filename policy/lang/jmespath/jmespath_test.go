package jmespath_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// hosts resolves a fixed set of names.
type hosts map[string][]netip.Addr

func (h hosts) LookupHost(name string) ([]netip.Addr, error) {
	if addresses, ok := h[name]; ok {
		return addresses, nil
	}
	return nil, errors.New("no such host")
}

func newEngine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{
		Now:    func() time.Time { return time.Date(2023, 1, 12, 17, 37, 0, 0, time.FixedZone("", -5*3600)) },
		Random: rand.NewChaCha8([32]byte{}),
		Hosts: hosts{
			"kyverno.example":  {netip.MustParseAddr("8.8.8.8")},
			"mixed.example":    {netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("10.0.0.1")},
			"nowhere.example":  {},
			"metadata.example": {netip.MustParseAddr("169.254.169.254")},
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

func search(tb testing.TB, expression string, data any) (any, error) {
	tb.Helper()
	query, err := newEngine(tb).Compile(expression)
	if err != nil {
		return nil, err
	}
	return query.Search(data)
}

func list(items ...any) []any { return items }

func TestFunctions(t *testing.T) {
	data := map[string]any{
		"labels": map[string]any{"b": "2", "a": "1"},
		"sizes":  list("2Ki", "5Gi", "8Mi"), "spans": list("2h", "50s", "90s"), "counts": list(6.0, 3.0, 8.0),
		"people": list(map[string]any{"name": "b"}, map[string]any{"name": "a"}),
		"big":    "10Mi",
	}
	tests := []struct {
		expression string
		want       any
	}{
		{"compare('a', 'b')", -1.0},
		{"compare('b', 'a')", 1.0},
		{"equal_fold('pizza', 'pIzZa')", true},
		{"equal_fold('pizza', 'apple')", false},
		{"replace('a ipsum b ipsum c ipsum', 'ipsum', 'x', `2`)", "a x b x c ipsum"},
		{"replace('aa', 'a', 'b', `-1`)", "bb"},
		{"replace_all('aa', 'a', 'b')", "bb"},
		{"to_upper('abc')", "ABC"},
		{"to_lower('ABC')", "abc"},
		{"trim('foocorpcom', 'mcof')", "rp"},
		{"trim('foocorpcom', 'o')", "foocorpcom"},
		{"trim_prefix('docker://a/b', 'docker://')", "a/b"},
		{"split('cat,dog', ',')", list("cat", "dog")},
		{"truncate('foobar', `3`)", "foo"},
		{"truncate('für', `2`)", "fü"},
		{"truncate('foo', `9`)", "foo"},
		{"truncate('foo', `-1`)", ""},
		{"to_boolean('FalsE')", false},
		{"path_canonicalize('/var//lib///kubelet/')", "/var/lib/kubelet"},
		{"path_canonicalize('/var/../etc')", "/etc"},
		{"regex_match('^[1-7]$', `1`)", true},
		{"regex_match('^[1-7]$', '8')", false},
		{"regex_replace_all('([0-9])([0-9])', 'hello im 42 months old', '${1}1')", "hello im 41 months old"},
		{"regex_replace_all_literal('[0-9]+', 'a1b22', '$1')", "a$1b$1"},
		{"regex_replace_all('7$', `16777217`, '8')", "16777218"},
		{"regex_replace_all_literal('x', 'x', `9007199254740992`)", "9007199254740992"},
		{"pattern_match('158-6?-3*', '158-63-4')", false},
		{"pattern_match('158-6?-3*', '158-63-34')", true},
		{"pattern_match('1*', `158`)", true},
		{"semver_compare('1.2.3', '1.2.4')", false},
		{"semver_compare('4.1.3', '>=4.1.x')", true},
		{"semver_compare('4.1.3', '!4.x.x')", false},
		{"semver_compare('1.8.6', '>1.0.0 <2.0.0')", true},
		{"semver_compare('2.1.5', '<2.0.0 || >=3.0.0')", false},

		{"add(`1`, `2`)", 3.0},
		{"add('10Mi', '10Mi')", "20Mi"},
		{"subtract('10Mi', '5Ki')", "10235Ki"},
		{"subtract('2h', '30s')", "1h59m30s"},
		{"multiply(`3`, '2Gi')", "6Gi"},
		{"multiply('2s', `3`)", "6s"},
		{"multiply(`2`, `2.5`)", 5.0},
		{"divide('10Mi', '5Ki')", 2048.0},
		{"divide('10Mi', `2`)", "5Mi"},
		{"divide('3h', '2h')", 1.5},
		{"divide('3h', `2`)", "1h30m0s"},
		{"divide(`1`, `4`)", 0.25},
		{"modulo(`10`, `3`)", 1.0},
		{"modulo('10Mi', '3Mi')", "1Mi"},
		{"modulo('3h', '2h')", "1h0m0s"},
		{"sum(sizes)", "5251074Ki"},
		{"sum(spans)", "2h2m20s"},
		{"sum(counts)", 17.0},
		{"round(`10.125`, `2`)", 10.13},
		{"round(`10.5`, `0`)", 11.0},

		{"time_since('', '2022-04-10T03:14:05-07:00', '2022-04-11T03:14:05-07:00')", "24h0m0s"},
		{"time_since('Mon Jan _2 15:04:05 MST 2006', 'Mon Jan 02 15:04:05 MST 2021', 'Mon Jan 10 03:14:16 MST 2021')", "180h10m11s"},
		{"time_since('2006-Jan-02', '2020-Jan-14', '2020-Jan-17')", "72h0m0s"},
		{"time_since('', '2023-01-12T17:37:00-05:00', '')", "0s"},
		{"time_now()", "2023-01-12T17:37:00-05:00"},
		{"time_now_utc()", "2023-01-12T22:37:00Z"},
		{"time_to_cron('2022-04-11T03:14:05-07:00')", "14 3 11 4 1"},
		{"time_add('2023-01-12T12:37:56-05:00', '6h')", "2023-01-12T18:37:56-05:00"},
		{"time_parse('Mon Jan 02 2006 15:04:05 -0700', 'Fri Jun 22 2022 17:45:00 +0100')", "2022-06-22T17:45:00+01:00"},
		{"time_parse('1702691171', '1702691171')", "2023-12-16T01:46:11Z"},
		{"time_utc('2021-01-02T18:04:05-05:00')", "2021-01-02T23:04:05Z"},
		{"time_diff('2023-01-12T00:00:00Z', '2023-01-11T00:00:00Z')", "-24h0m0s"},
		{"time_before('2023-01-12T19:05:59Z', '2023-01-13T19:05:59Z')", true},
		{"time_after('2023-01-12T14:07:55-05:00', '2023-01-12T19:05:59Z')", true},
		{"time_after('2023-01-12T19:05:59Z', '2023-01-13T19:05:59Z')", false},
		{"time_between('2023-01-12T19:05:59Z', '2023-01-01T19:05:59Z', '2023-01-15T19:05:59Z')", true},
		{"time_between('2023-01-12T19:05:59Z', '2023-01-01T19:05:59Z', '2023-01-11T19:05:59Z')", false},
		{"time_truncate('2023-01-12T17:37:00Z', '2h')", "2023-01-12T16:00:00Z"},

		{"label_match(`{\"a\":\"1\"}`, labels)", true},
		{"label_match(labels, `{\"a\":\"1\"}`)", false},
		{"label_match(`{\"a\":\"2\"}`, labels)", false},
		{"lookup(labels, 'a')", "1"},
		{"lookup(labels, 'z')", nil},
		{"lookup(counts, `1`)", 3.0},
		{"lookup(counts, `9`)", nil},
		{"items(labels, 'k', 'v')", list(map[string]any{"k": "a", "v": "1"}, map[string]any{"k": "b", "v": "2"})},
		{"items(counts, 'k', 'v') | [0]", map[string]any{"k": 0.0, "v": 6.0}},
		{"object_from_lists(`[\"a\",\"b\"]`, `[1]`)", map[string]any{"a": 1.0, "b": nil}},
		{"object_from_lists(`[1.5,true]`, `[1,2]`)", map[string]any{"1.5": 1.0, "true": 2.0}},
		{"keys(labels)", list("a", "b")},
		{"values(labels)", list("1", "2")},
		{"join('-', keys(labels))", "a-b"},
		{"sort_by(people, &name)[0].name", "a"},
		{"[people, people][].name", list("b", "a", "b", "a")},
		{"to_string(`[1, \"<\"]`)", "[1,\"<\"]"},
		{"to_string('x')", "x"},
		{"missing[].name || 'none'", "none"},
		{"labels.*", list("1", "2")},
		{"labels.*.add(@, '1')", list("2", "3")},
		{"people.* || 'none'", "none"},
		{"*.a | [0]", "1"},

		{"base64_encode('hi')", "aGk="},
		{"base64_decode('aGk=')", "hi"},
		{"parse_json('{\"a\":[1]}').a[0]", 1.0},
		{"parse_yaml('a:\n- 1').a[0]", 1.0},
		{"sha256('alertmanager-kube-prometheus-stack-alertmanager')", "75c07bb807f2d80a85d34880b8af0c5f29f7c27577076ed5d0e4b427dee7dbcc"},
		{"sha1('a')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"},
		{"md5('a')", "0cc175b9c0f1b6a831c399e269772661"},

		{"image_normalize('nginx')", "docker.io/nginx:latest"},
		{"image_normalize('index.docker.io/nginx:1')", "docker.io/nginx:1"},
		{"image_normalize('localhost:5000/a/b')", "localhost:5000/a/b:latest"},
		{"image_normalize('ghcr.io/a/b:v1@sha256:" + strings.Repeat("ab", 32) + "')", "ghcr.io/a/b@sha256:" + strings.Repeat("ab", 32)},
		{"is_external_url('https://8.8.8.8/x')", true},
		{"is_external_url('https://10.1.2.3:8080')", false},
		{"is_external_url('http://[::1]/')", false},
		{"is_external_url('http://[::ffff:127.0.0.1]/')", false},
		{"is_external_url('http://169.254.169.254/latest')", false},
		{"is_external_url('https://kyverno.example')", true},
		{"is_external_url('https://mixed.example')", false},
		{"is_external_url('https://metadata.example')", false},

		{"missing || 'default'", "default"},
		{"labels.a", "1"},
		{"people[?name == 'a'].name | [0]", "a"},
		{"people[*].missing", []any{}},
	}
	for _, test := range tests {
		got, err := search(t, test.expression, data)
		if err != nil {
			t.Errorf("%s: %v", test.expression, err)
		} else if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s = %#v, want %#v", test.expression, got, test.want)
		}
	}
}

func TestErrors(t *testing.T) {
	data := map[string]any{"n": nil, "l": list("a", 1.0)}
	tests := []struct{ expression, want, reason string }{
		{"", "is empty", "an empty expression means nothing"},
		{"a.", "Expected identifier", "cut off after a dot"},
		{"foo(", "Incomplete expression", "cut off in a call"},
		{"`1`('a')", "no function", "only names can be called"},
		{"frobnicate('a')", `no function "frobnicate"`, "known when it is compiled"},
		{"to_upper()", "want 1 arguments, got 0", "known when it is compiled"},
		{"'abc", "not closed", "an open string"},
		{strings.Repeat("(", 300) + "a" + strings.Repeat(")", 300), "exceeds the bound", "the parser is recursive"},
		{"a\uE000b", "not allowed", "the marks of holes"},
		{"missing", `Unknown key "missing"`, "a missing key is an error"},
		{"to_upper(n)", "argument 1: want a string, got null", "null is no string"},
		{"to_upper(l)", "argument 1: want a string, got an array", "nor is an array"},
		{"join(',', l)", "item 1: want a string, got a number", "not all strings"},
		{"to_boolean('yes')", "want true or false", "only two words"},
		{"regex_match('(', 'a')", "missing closing", "a broken expression"},
		{"semver_compare('1', '>1.0.0')", "version", "not a version"},
		{"semver_compare('1.0.0', 'x y')", "range", "not a range"},
		{"divide(`1`, `0`)", "division by zero", "scalars"},
		{"divide('1Mi', '0')", "division by zero", "quantities"},
		{"modulo('1h', '0s')", "division by zero", "durations"},
		{"modulo(`1.5`, `1`)", "whole numbers", "no remainder of fractions"},
		{"add('1Mi', '1h')", "do not go together", "units differ"},
		{"multiply('1Mi', '1Mi')", "do not go together", "no square of quantities"},
		{"add('pear', `1`)", "no number, quantity or duration", "no operand"},
		{"add('1e999999999', `1`)", "", "an exponent that would fill memory"},
		{"multiply('2540400h', `1000`)", "out of range", "past 292 years"},
		{"round(`1`, `-1`)", "whole number of places", "negative places"},
		{"time_utc('yesterday')", "RFC 3339", "not a time"},
		{"time_add('2023-01-12T12:37:56Z', 'x')", "duration", "not a duration"},
		{"time_since('', 'x', '')", "the start", "not a time"},
		{"lookup(l, 'a')", "whole number", "an array has indices"},
		{"lookup(@, `1`)", "want a string", "an object has keys"},
		{"object_from_lists(`[\"a\",null]`, l)", "key 1", "null is no key"},
		{"object_from_lists(`[[]]`, l)", "key 0", "nor is a list"},
		{"base64_decode('!')", "illegal base64", "not base64"},
		{"parse_json('{')", "unexpected end", "not JSON"},
		{"parse_yaml('a: [')", "yaml", "not YAML"},
		{"x509_decode('x')", "no PEM block", "not a certificate"},
		{"random('')", "empty", "nothing to choose from"},
		{"random('([a-z]{1000}){9}')", "invalid repeat count", "too often"},
		{"image_normalize('a b')", "image reference", "not a reference"},
		{"is_external_url('nothing')", "no host", "not a URL with a host"},
		{"is_external_url('https://unknown.example')", "no such host", "not known is not internal"},
		{"is_external_url('https://nowhere.example')", "no address", "no address is not external"},
		{"replace_all('" + strings.Repeat("a", 3000) + "', 'a', '" + strings.Repeat("b", 3000) + "')", "exceeds the bound", "a result that grows"},
		{strings.Repeat("[@,@][]|", 60) + "@", "exceeds the bound", "a list that doubles"},
		{strings.Repeat("[@,@]|", 60) + "to_string(@)", "argument 1: the result exceeds", "a value that refers to itself"},
		{"[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]|[@,@]", "exceeds the bound", "a result that refers to itself"},
	}
	for _, test := range tests {
		got, err := search(t, test.expression, data)
		if err == nil {
			t.Errorf("%.80s = %v: want an error: %s", test.expression, got, test.reason)
		} else if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: error %q does not say %q: %s", test.expression, err, test.want, test.reason)
		}
	}
}

// TestAllFunctions names Kyverno's functions, all 51.
func TestAllFunctions(t *testing.T) {
	names := strings.Fields(`compare equal_fold replace replace_all to_upper to_lower trim trim_prefix split
		regex_replace_all regex_replace_all_literal regex_match pattern_match label_match to_boolean add sum subtract
		multiply divide modulo round base64_decode base64_encode time_since time_now time_now_utc path_canonicalize
		truncate semver_compare parse_json parse_yaml lookup items object_from_lists random x509_decode time_to_cron
		time_add time_parse time_utc time_diff time_before time_after time_between time_truncate image_normalize
		is_external_url sha256 sha1 md5`)
	if len(names) != 51 {
		t.Errorf("%d names", len(names))
	}
	for _, name := range names {
		_, err := newEngine(t).Compile(name + "(`1`, `2`, `3`, `4`, `5`)")
		if err == nil || !strings.Contains(err.Error(), "got 5") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorTypes(t *testing.T) {
	_, err := search(t, "a.b", map[string]any{"a": map[string]any{}})
	if undefined := (*jmespath.UndefinedError)(nil); !errors.As(err, &undefined) || undefined.Expression != "a.b" {
		t.Errorf("a missing key is %T", err)
	}
	_, err = search(t, "a.", nil)
	if syntax := (*jmespath.SyntaxError)(nil); !errors.As(err, &syntax) {
		t.Errorf("a broken expression is %T", err)
	}
	_, err = search(t, "to_upper(@)", 1.0)
	if undefined := (*jmespath.UndefinedError)(nil); errors.As(err, &undefined) {
		t.Error("a wrong argument is not an undefined key")
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := jmespath.New(jmespath.Options{Random: bytes.NewReader(nil)}); err == nil {
		t.Error("without a clock")
	}
	if _, err := jmespath.New(jmespath.Options{Now: time.Now}); err == nil {
		t.Error("without randomness")
	}
}

func TestRandom(t *testing.T) {
	for _, pattern := range []string{"[0-9a-z]{5}", "[A-Z0-9]{8}-[A-Z0-9]{4}", "a(b|c)d?", "x+y*", ".", "[^a]", `\d\w`} {
		seen := map[any]bool{}
		engine := newEngine(t)
		query, err := engine.Compile("random('" + pattern + "')")
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			got, err := query.Search(nil)
			if err != nil {
				t.Fatalf("%s: %v", pattern, err)
			}
			if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(got.(string)) {
				t.Errorf("random(%s) = %q does not match", pattern, got)
			}
			seen[got] = true
		}
		if len(seen) < 2 {
			t.Errorf("random(%s) always gives the same", pattern)
		}
	}
}

func TestRandomFailsWithItsSource(t *testing.T) {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		t.Fatal(err)
	}
	query, err := engine.Compile("random('[a-z]{4}')")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := query.Search(nil); err == nil {
		t.Errorf("got %v from a source that has nothing", got)
	}
}

func TestHoles(t *testing.T) {
	text := func(s string) jmespath.Piece { return jmespath.Piece{Text: s} }
	hole := jmespath.Piece{Hole: true}
	data := map[string]any{
		"data":  map[string]any{"prod": "p", "my-ns": "m", "a.b": "dotted", "a": map[string]any{"b": "path"}},
		"items": list("zero", "one"),
	}
	tests := []struct {
		pieces []jmespath.Piece
		values []any
		want   any
		err    string
		reason string
	}{
		{pieces: []jmespath.Piece{text("data."), hole}, values: list("prod"), want: "p", reason: "a key after a dot"},
		{pieces: []jmespath.Piece{text("data."), hole}, values: list("my-ns"), want: "m", reason: "which need not be a plain name"},
		{pieces: []jmespath.Piece{text("data."), hole}, values: list("a.b"), want: "path", reason: "or a path of plain names"},
		{pieces: []jmespath.Piece{text(`data."`), hole, text(`"`)}, values: list("a.b"), want: "dotted", reason: "in quotes it is one key"},
		{pieces: []jmespath.Piece{text("data.pr"), hole}, values: list("od"), want: "p", reason: "a part of a name"},
		{pieces: []jmespath.Piece{text("data."), hole}, values: list("x || `1`"), err: "Unknown key", reason: "a value is no code"},
		{pieces: []jmespath.Piece{text("to_upper('"), hole, text("')")}, values: list("a"), want: "A", reason: "in a string"},
		{pieces: []jmespath.Piece{text("to_upper('"), hole, text("')")}, values: list("a') || to_lower('X"), want: "A') || TO_LOWER('X", reason: "a quote does not end the string"},
		{pieces: []jmespath.Piece{text("to_upper('"), hole, text("')")}, values: list(`a\`), want: `A\`, reason: "nor does a backslash"},
		{pieces: []jmespath.Piece{text("'"), hole, text("-"), hole, text("'")}, values: list("a", list(1.0)), want: "a-[1]", reason: "anything but a string reads as JSON"},
		{pieces: []jmespath.Piece{text("length(`"), hole, text("`)")}, values: list(list(1.0, 2.0)), want: 2.0, reason: "a literal keeps its type"},
		{pieces: []jmespath.Piece{text("length(`"), hole, text("`)")}, values: list("[1,2,3]"), want: 3.0, reason: "a string in a literal is JSON"},
		{pieces: []jmespath.Piece{text("length(`"), hole, text("`)")}, values: list("[1,2` || `3]"), err: "not JSON", reason: "a backtick does not end the literal"},
		{pieces: []jmespath.Piece{text("`{\"a\": \""), hole, text("\"}`.a")}, values: list(`x", "b": "`), want: `x", "b": "`, reason: "nor a quote the string in it"},
		{pieces: []jmespath.Piece{text("`["), hole, text("]`")}, values: list("1, 2"), want: list(1.0, 2.0), reason: "outside it is JSON text"},
		{pieces: []jmespath.Piece{text("items["), hole, text("]")}, values: list(1.0), want: "one", reason: "an index"},
		{pieces: []jmespath.Piece{text("items["), hole, text("]")}, values: list("-1"), want: "one", reason: "an index as a string"},
		{pieces: []jmespath.Piece{text("items["), hole, text("]")}, values: list("0] || x["), err: "not a whole number", reason: "an index is a number"},
		{pieces: []jmespath.Piece{text("contains(["), hole, text("], 'x')")}, values: list("x"), want: true, reason: "a list, not an index"},
		{pieces: []jmespath.Piece{text("add("), hole, text(", `1`)")}, values: list(2.0), want: 3.0, reason: "an argument"},
		{pieces: []jmespath.Piece{hole}, values: list("data"), want: "data", reason: "alone it is its value"},
		{pieces: []jmespath.Piece{hole, text("(`1`)")}, values: list("abs"), err: "no function", reason: "a value is no function"},
		{pieces: []jmespath.Piece{text("items[?@ == '"), hole, text("'] | [0]")}, values: list("one"), want: "one", reason: "in a filter"},
		{pieces: []jmespath.Piece{text(`data.{"k`), hole, text(`": prod}.kx`)}, values: list("x"), want: "p", reason: "in the key of a hash"},
	}
	for _, test := range tests {
		query, err := newEngine(t).CompilePieces(test.pieces)
		var got any
		if err == nil {
			got, err = query.Search(data, test.values...)
		}
		switch {
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%v with %v: got %v, %v; want error %q: %s", test.pieces, test.values, got, err, test.err, test.reason)
		case test.err == "" && (err != nil || !reflect.DeepEqual(got, test.want)):
			t.Errorf("%v with %v: got %#v, %v; want %#v: %s", test.pieces, test.values, got, err, test.want, test.reason)
		}
	}
}

func TestHolesWantTheirValues(t *testing.T) {
	query, err := newEngine(t).CompilePieces([]jmespath.Piece{{Text: "a."}, {Hole: true}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query.Search(nil); err == nil {
		t.Error("a hole without a value")
	}
}

func TestSearchLeavesDataAlone(t *testing.T) {
	data := list(3.0, 1.0, 2.0)
	if _, err := search(t, "sort_by(@, &@)", data); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(data, list(3.0, 1.0, 2.0)) {
		t.Errorf("the data was sorted: %v", data)
	}
}

func TestNormalize(t *testing.T) {
	got, err := jmespath.Normalize(map[string]any{"i": 1, "l": list(int64(2), "x"), "s": []string{"a"}, "m": map[string]string{"k": "v"}})
	want := map[string]any{"i": 1.0, "l": list(2.0, "x"), "s": list("a"), "m": map[string]any{"k": "v"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := jmespath.Normalize(list(struct{}{})); err == nil {
		t.Error("a struct is not JSON")
	}
	plain := map[string]any{"a": list("b")}
	if got, _ := jmespath.Normalize(plain); reflect.ValueOf(got).Pointer() != reflect.ValueOf(plain).Pointer() {
		t.Error("a plain value was copied")
	}
}

func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"a.b[0]", "sort_by(a, &b)", "*.c", "[?a > `1`]", "a[::-1]", "{a: b}", "max_by(@, &to_upper(a))", "random('[a-z]{3}')", "items(@, 'a', 'b')", "a || !b && c"} {
		f.Add(seed, `{"a":[{"b":1}],"b":"x"}`)
	}
	f.Fuzz(func(t *testing.T, expression, document string) {
		data, err := search(t, "parse_json(@)", document)
		if err != nil {
			return
		}
		_, _ = search(t, expression, data)
	})
}

func FuzzHole(f *testing.F) {
	f.Add("a') || ('", "x")
	f.Add("`", `"`)
	f.Fuzz(func(t *testing.T, first, second string) {
		query, err := newEngine(t).CompilePieces([]jmespath.Piece{
			{Text: "['"}, {Hole: true}, {Text: "', `\""}, {Hole: true}, {Text: "\"`]"},
		})
		if err != nil {
			t.Fatal(err)
		}
		first, second = strings.ToValidUTF8(first, "?"), strings.ToValidUTF8(second, "?")
		got, err := query.Search(map[string]any{}, first, second)
		if err != nil || !reflect.DeepEqual(got, list(first, second)) {
			t.Errorf("%q and %q became %#v, %v", first, second, got, err)
		}
	})
}

func BenchmarkSearch(b *testing.B) {
	query, err := newEngine(b).Compile("request.object.metadata.labels.app || ''")
	if err != nil {
		b.Fatal(err)
	}
	data := map[string]any{"request": map[string]any{"object": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := query.Search(data); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleEngine_Compile() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	query, err := engine.Compile("semver_compare(version, '>=1.2.0') && sum(sizes)")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(query.Search(map[string]any{"version": "1.3.0", "sizes": []any{"1Gi", "512Mi"}}))
	// Output: 1536Mi <nil>
}
