// Package signature describes the functions of JMESPath expressions in Kyverno's policies (JMESPath, and Kyverno
// 1.19), and shows the syntax trees of expressions, for authors of policies.
package signature

import (
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// Function describes a function.
type Function struct {
	Name string `json:"name"`
	// Arguments are the kinds of the arguments, such as "a string or a number".
	Arguments []string `json:"arguments"`
	// Variadic functions accept the last argument one or more times.
	Variadic bool `json:"variadic,omitempty"`
	// Example is a call. It needs no data.
	Example string `json:"example"`
}

// Functions returns the functions, sorted by name.
func Functions() []Function {
	table, examples := function.Natives(), examples()
	maps.Copy(table, function.Library{}.Table())
	var list []Function
	for _, name := range slices.Sorted(maps.Keys(table)) {
		f := table[name]
		s := Function{Name: name, Arguments: []string{}, Variadic: f.Variadic, Example: examples[name]}
		at, takes := function.ExpressionAt()[name]
		for i, kind := range f.Arguments {
			switch {
			case takes && i == at:
				kind = function.Expression
			case takes:
				kind = function.Array
			}
			s.Arguments = append(s.Arguments, kind.String())
		}
		list = append(list, s)
	}
	return list
}

// examples are calls of the functions.
func examples() map[string]string {
	const bill = "`{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.6\"," +
		" \"components\": [{\"name\": \"a\", \"purl\": \"pkg:npm/a@1.5.0\", \"licenses\": [{\"expression\": \"MIT AND ISC\"}]}]}`"
	const scan = "`{\"matches\": [{\"vulnerability\": {\"id\": \"CVE-2026-1\", \"severity\": \"High\"}, \"artifact\": {\"name\": \"a\", \"version\": \"1\"}}]}`"
	return map[string]string{
		"abs": "abs(`-2`)", "add": "add('10Mi', '1Gi')", "avg": "avg(`[1, 2]`)", "base64_decode": "base64_decode('aGVsbG8=')",
		"base64_encode": "base64_encode('hello')", "ceil": "ceil(`1.2`)", "compare": "compare('a', 'b')",
		"contains": "contains(`[\"a\", \"b\"]`, 'a')", "divide": "divide('1Gi', `2`)", "ends_with": "ends_with('web.example', '.example')",
		"equal_fold": "equal_fold('Web', 'web')", "floor": "floor(`1.8`)", "image_normalize": "image_normalize('nginx')",
		"is_external_url": "is_external_url('https://10.0.0.1')", "items": "items(`{\"team\": \"shop\"}`, 'key', 'value')",
		"join": "join('/', `[\"shop\", \"web\"]`)", "keys": "keys(`{\"b\": 1, \"a\": 2}`)",
		"label_match": "label_match(`{\"app\": \"web\"}`, `{\"app\": \"web\", \"tier\": \"1\"}`)", "length": "length(`[1, 2, 3]`)",
		"lookup": "lookup(`{\"shop/web\": 1}`, 'shop/web')", "map": "map(&name, `[{\"name\": \"a\"}, {\"name\": \"b\"}]`)",
		"max": "max(`[1, 3, 2]`)", "max_by": "max_by(`[{\"n\": 1}, {\"n\": 2}]`, &n)", "md5": "md5('a')",
		"merge": "merge(`{\"a\": 1}`, `{\"b\": 2}`)", "min": "min(`[3, 1, 2]`)", "min_by": "min_by(`[{\"n\": 1}, {\"n\": 2}]`, &n)",
		"modulo": "modulo(`7`, `3`)", "multiply": "multiply('10Mi', `3`)", "not_null": "not_null(`null`, 'default')",
		"object_from_lists": "object_from_lists(`[\"a\", \"b\"]`, `[1, 2]`)", "parse_json": "parse_json('{\"a\": [1]}')",
		"parse_yaml": "parse_yaml('a: [1]')", "path_canonicalize": "path_canonicalize('/var/../etc//passwd')",
		"pattern_match": "pattern_match('w*', 'web')", "random": "random('[a-z]{4}')", "regex_match": "regex_match('^v[0-9]+$', 'v12')",
		"regex_replace_all":         "regex_replace_all('([a-z]+)-([a-z]+)', 'shop-web', '$2-$1')",
		"regex_replace_all_literal": "regex_replace_all_literal('[0-9]', 'v1.2', 'x')", "replace": "replace('a.b.c', '.', '-', `1`)",
		"replace_all": "replace_all('a.b.c', '.', '-')", "reverse": "reverse(`[1, 2]`)", "round": "round(`1.256`, `2`)",
		"semver_compare": "semver_compare('1.27.3', '>=1.27.0 <2.0.0')", "sha1": "sha1('a')", "sha256": "sha256('a')",
		"sort": "sort(`[\"b\", \"a\"]`)", "sort_by": "sort_by(`[{\"n\": 2}, {\"n\": 1}]`, &n)", "split": "split('shop/web', '/')",
		"starts_with": "starts_with('web.example', 'web')", "subtract": "subtract('1Gi', '512Mi')", "sum": "sum(`[1, 2, 3]`)",
		"time_add": "time_add('2026-11-01T00:00:00Z', '36h')", "time_after": "time_after('2026-11-02T00:00:00Z', '2026-11-01T00:00:00Z')",
		"time_before":  "time_before('2026-11-02T00:00:00Z', '2026-11-01T00:00:00Z')",
		"time_between": "time_between('2026-11-02T00:00:00Z', '2026-11-01T00:00:00Z', '2026-11-03T00:00:00Z')",
		"time_diff":    "time_diff('2026-11-01T00:00:00Z', '2026-11-02T12:00:00Z')", "time_now": "time_now()",
		"time_now_utc": "time_now_utc()", "time_parse": "time_parse('2006-01-02', '2026-11-01')",
		"time_since":   "time_since('', '2026-11-01T00:00:00Z', '2026-11-02T00:00:00Z')",
		"time_to_cron": "time_to_cron('2026-11-01T12:30:00Z')", "time_truncate": "time_truncate('2026-11-01T12:34:56Z', '1h')",
		"time_utc": "time_utc('2026-11-01T12:00:00+02:00')", "to_array": "to_array('a')", "to_boolean": "to_boolean('true')",
		"to_lower": "to_lower('WEB')", "to_number": "to_number('1.5')", "to_string": "to_string(`{\"a\": 1}`)",
		"to_upper": "to_upper('web')", "trim": "trim('--web--', '-')", "trim_prefix": "trim_prefix('v1.2', 'v')",
		"truncate": "truncate('container', `4`)", "type": "type(`[1]`)", "values": "values(`{\"b\": 1, \"a\": 2}`)",
		"packages":                   "packages(" + bill + ")",
		"packages_of":                "packages_of(" + bill + ", 'pkg:npm/a?vers=<2.0.0')",
		"packages_not_licensed":      "packages_not_licensed(" + bill + ", `[\"MIT\"]`)",
		"packages_requiring_license": "packages_requiring_license(" + bill + ", `[\"ISC\"]`)",
		"vulnerabilities":            "vulnerabilities(" + scan + ", `[]`)",
		"x509_decode":                "x509_decode(certificate)",
	}
}
