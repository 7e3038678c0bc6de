package rego_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/rego"
)

// TestOrder: what has no order has none: neither yes nor no, whatever stands around it.
func TestOrder(t *testing.T) {
	const most = " and only two numbers or two strings have an order: ask is_number or is_string first"
	for _, c := range []struct {
		reason, rules string
		// holds and fails are inputs that do and do not; refused are those that cannot be
		// asked about, by why.
		holds, fails []string
		refused      map[string]string
	}{
		{"at least", "isCompliant { input.x >= 7 }", []string{"7", "7.0", "7.5", "70", "9007199254740993", "1e3", "1e300"}, []string{"6", "6.99", "-7", "1e-3"}, map[string]string{
			`"3"`: `>=: the string "3" was compared with the number 7,` + most, "null": "null was compared", "true": "the boolean true was", "[]": "an array was", "{}": "an object was", `"` + strings.Repeat("x", 48) + `"`: "the string \"xxx", `"` + strings.Repeat("x", 49) + `"`: ">=: a string was",
		}},
		{"more than", "isCompliant { input.x > 7 }", []string{"8"}, []string{"7", "7.0", "6"}, map[string]string{"[]": ">: an array was compared with the number 7"}},
		{"at most", "isCompliant { input.x <= 0 }", []string{"0", "-1", "-0", "-0.0", "-1e-300"}, []string{"1", "1e-300"}, map[string]string{"null": "<=: null was compared with the number 0", "false": "the boolean false"}},
		{"less than", "isCompliant { input.x < 0 }", []string{"-1"}, []string{"0", "1"}, map[string]string{"null": "<: null was compared"}},
		{"strings", `isCompliant { input.x >= "b" }`, []string{`"b"`, `"c"`}, []string{`"a"`, `""`}, map[string]string{"3": "the number 3 was compared with the string", "[]": "an array"}},
		{"the right side", "isCompliant { 7 <= input.x }", []string{"8"}, []string{"6"}, map[string]string{`"3"`: `the number 7 was compared with the string "3"`}},
		{"a set", "isCompliant { {1 | true} <= input.x }", nil, nil, map[string]string{"7": "a set was compared with the number 7"}},
		{"by its name", "isCompliant { gte(input.x, 7) }", []string{"8"}, []string{"6"}, map[string]string{`"3"`: "was compared"}},
		{"below not", "isCompliant { not input.x >= 7 }", []string{"6"}, []string{"8"}, map[string]string{`"3"`: "was compared", "null": "was compared"}},
		{"below not, in a rule", "bad { input.x < 7 }\nisCompliant { not bad }", []string{"8"}, []string{"6"}, map[string]string{"null": "was compared"}},
		{"below not, in a function", "bad(x) { x < 7 }\nisCompliant { not bad(input.x) }", []string{"8"}, []string{"6"}, map[string]string{"null": "was compared"}},
		{"assigned", "isCompliant = ok { ok := input.x >= 7 }", []string{"8"}, []string{"6"}, map[string]string{"[]": "was compared"}},
		{"an argument", "f(x) = x\nisCompliant { f(input.x >= 7) }", []string{"8"}, []string{"6"}, map[string]string{"[]": "was compared"}},
		{"in the head", "isCompliant = input.x >= 7", []string{"8"}, []string{"6"}, map[string]string{"[]": "was compared"}},
		{"in a default that is not reached", "default isCompliant = false\nisCompliant { input.x >= 7 }", []string{"8"}, []string{"6"}, map[string]string{"[]": "was compared"}},
		{"in a branch", "isCompliant = true { input.x == 1 } else = false { input.x < 7 } else = true { true }", []string{"1", "8"}, []string{"6"}, map[string]string{"[]": "was compared"}},
		{"in a list", "isCompliant { count([1 | input.x[_] >= 7]) == 0 }", []string{"[]", "[6]"}, []string{"[8]"}, map[string]string{"[6,null]": "was compared"}},
		{"in a set of lists", "isCompliant { s := {x | some i; x := input.x[i]; x >= 7}; count(s) == 0 }", []string{"[]", "[6]"}, []string{"[8]"}, map[string]string{`[6,"8"]`: "was compared"}},
		{"in an object", "isCompliant { count({i: 1 | input.x[i] >= 7}) == 0 }", []string{"[]", "[6]"}, []string{"[8]"}, map[string]string{`["8"]`: "was compared"}},
		{"in every", "import future.keywords.every\nisCompliant { every x in input.x { x >= 7 } }", []string{"[]", "[8]"}, []string{"[6]", "[8,6]"}, map[string]string{`["3"]`: "was compared"}},
		{"with another input", "at { input.x >= 7 }\nisCompliant { at with input.x as input.x }", []string{"8"}, []string{"6"}, map[string]string{`"3"`: "was compared"}},
		{"results", "isCompliant[r] { r := {\"result\": input.x >= 7} }", []string{"8"}, []string{"6"}, map[string]string{`"3"`: "was compared"}},
		{"a type that was asked for", "isCompliant { is_number(input.x); input.x >= 7 }", []string{"8"}, []string{"6", `"8"`, "null"}, nil},
		{"the newer syntax", "import rego.v1\nisCompliant if not input.x < 7", []string{"8"}, []string{"6"}, map[string]string{"null": "was compared"}},

		{"the least", "isCompliant { min(input.x) >= 7 }", []string{"[8,7]", "[7.0,7]"}, []string{"[8,6]", "[]"}, map[string]string{`[8,"3"]`: `min(): the string "3" was compared with the number 8`, "[null]": "null was compared with null", "[true]": "was compared", "3": "min(): want an array or a set, found the number 3"}},
		{"the least string", `isCompliant { min(input.x) == "a" }`, []string{`["b","a"]`}, []string{`["b"]`}, nil},
		{"the most", "isCompliant { max(input.x) <= 3 }", []string{"[3,1]", "[3,3.0]"}, []string{"[4]", "[1,4]", "[4,1]", "[]"}, map[string]string{"[null,3]": "max(): null was compared with", "[[]]": "was compared", `{}`: "found an object"}},
		{"the most of a set", "isCompliant { max({x | x := input.x[_]}) <= 3 }", []string{"[3,1]"}, []string{"[4]", "[]"}, map[string]string{"[null,3]": "max(): null was compared with"}},
		{"sorted", "isCompliant { sort(input.x) == [1, 2] }", []string{"[2,1]", "[1.0,2]"}, []string{"[2]", "[]"}, map[string]string{`[2,"1"]`: "sort(): the number 2 and the string \"1\" have no order", "[null,1]": "have no order", "1": "want an array"}},
		{"sorted lists", `isCompliant { sort(input.x)[0][1] == "a" }`, []string{`[[2,"b"],[1,"a"]]`, `[[1,"a"],[1,"b"]]`, `[[1,"a"],[1,"a",null]]`, `[[1,"a",null],[2,"b",3]]`}, []string{`[[2,"a"],[1,"b"]]`, `[[1]]`}, map[string]string{`[["2","b"],[1,"a"]]`: "have no order", `[[1,"a"],[1,null]]`: "have no order", `[[1,"a"],1]`: "have no order"}},
		{"sorted objects", "isCompliant { count(sort(input.x)) == 2 }", []string{`[{"a":1},{"b":2}]`}, []string{`[{"a":1}]`}, map[string]string{`[{"a":1},[]]`: "have no order"}},
		{"a number of something", "isCompliant { to_number(input.x) == 0 }", []string{"0", `"0"`, `"0.0"`, `"-0"`, `"+0"`, `"00"`}, []string{"1", `"1"`, `"10.0"`}, map[string]string{
			"null": "to_number(): null is no number", "false": "the boolean false is no number", `""`: "is no number", `"x"`: `"x" is no number`, `"inf"`: "is no number", `"nan"`: "is no number", `"1e999999999"`: "too large", "[]": "an array is no number",
		}},
		{"the number of a string", "isCompliant { to_number(input.x) <= 1 }", []string{`"1.0"`, `"1"`, `"0.999"`}, []string{`"10.0"`, `"1.0001"`, `"9007199254740993"`}, nil},
		{"a sum", "isCompliant { sum(input.x) <= 1 }", []string{"[]", "[1]", "[0.1,0.9]", "[2,-1]"}, []string{"[2]", "[9223372036854775807,1]", "[0.5,0.6]"}, map[string]string{"[null]": "sum(): null is no number", `["1"]`: "is no number", "1": "want an array"}},
		{"a sum of fractions", "isCompliant { sum(input.x) == 0.3 }", []string{"[0.1,0.2]", "[0.3]"}, []string{"[0.1]"}, nil},
		{"a sum of a set", "isCompliant { sum({x | x := input.x[_]}) == 3 }", []string{"[1,2,2]"}, []string{"[1]"}, nil},
		{"a sum that no float64 has", "isCompliant { sum([x | x := input.x[_]]) > 0 }", []string{"[1e308,1e308]"}, nil, nil},
		{"the content of a string", "isCompliant { json.unmarshal(input.x).n <= 1 }", []string{`"{\"n\":1.0}"`}, []string{`"{\"n\":10.0}"`, `"{}"`}, map[string]string{`"{\"n\":\"1\"}"`: "was compared", `"{"`: "json_unmarshal(): it is no JSON", `"{} {}"`: "no JSON: something follows", "1": "the number 1 is no JSON", `"{\"n\":1e999999999}"`: "no JSON"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			condition, err := rego.Compile("package sigstore\n"+c.rules, rego.Options{Time: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			for want, list := range map[bool][]string{true: c.holds, false: c.fails} {
				for _, x := range list {
					if held, why, err := condition.Holds(exact(`{"x":` + x + `}`)); held != want || err != nil {
						t.Errorf("%s: %t %q %v; want %t", x, held, why, err, want)
					}
				}
			}
			for x, want := range c.refused {
				if held, _, err := condition.Holds(exact(`{"x":` + x + `}`)); held || err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %t %v; want %q", x, held, err, want)
				}
			}
		})
	}
}

// exact is JSON of which no number was read.
func exact(text string) any { return json.RawMessage(text) }

// TestOrderIsNotReplaced: no policy makes an order of its own of Rego's.
func TestOrderIsNotReplaced(t *testing.T) {
	for _, c := range []struct{ reason, policy, want string }{
		{"a comparison", "isCompliant { 1 < 3 }", ""},
		{"a function that is called <", "lt(a, b) { true }\nisCompliant { 3 < 1 }", "lt is what Rego calls <: give it another name"},
		{"a function by another name", "less(a, b) { a < b }\nisCompliant { less(1, 3) }", ""},
		{"a value that is called <", "lt := 3\nisCompliant { 1 < lt }", "give it another name"},
		{"an import that is called <", "import data.sigstore.less as lt\nless(a, b) { true }\nisCompliant { lt(3, 1) }", "give it another name"},
		{"an import by another name", "import data.sigstore.less as smaller\nless(a, b) { true }\nisCompliant { smaller(3, 1) }", ""},
		{"a variable that is called <", "isCompliant { lt := 3; 1 < lt }", ""},
		{"a function in the place of <", "f(a, b) = true\nisCompliant { 3 < 1 with lt as f }", "with keyword target must reference"},
		{"a value in the place of <", "isCompliant { 3 < 1 with lt as true }", "with keyword target must reference"},
		{"a value in the place of max", "isCompliant { max([3]) == 1 with max as 1 }", "with keyword target must reference"},
		{"a value in the place of count", "isCompliant { count([3]) == 7 with count as 7 }", ""},
		{"max in the place of a function", "f(a) = 1\nisCompliant { f([3]) == 3 with f as max }", "max is unsafe"},
		{"the policy's own max", "max(a, b) = a { a >= b }\nmax(a, b) = b { a < b }\nisCompliant { max(1, 3) == 3 }", ""},
		{"a value that is called max", "max := 3\nisCompliant { 1 <= max }", ""},
		{"a value that is called max, called", "max := 3\nisCompliant { max([1]) == 1 }", "has arity 0"},
		{"a value that is called json", "json := 3\nisCompliant { json == 3 }", ""},
		{"a number without end", "isCompliant { 1 < 1e400 }", "is no number"},
		{"a small number", "isCompliant { 1 < 1e300 }", ""},
		{"a large number in a head", "x = 1e400\nisCompliant { true }", "is no number"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			condition, err := rego.Compile("package sigstore\n"+c.policy, rego.Options{})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v; want %q", err, c.want)
			}
			if err != nil {
				return
			}
			if held, why, err := condition.Holds(map[string]any{}); !held || err != nil {
				t.Errorf("held %t, %s %v", held, why, err)
			}
		})
	}
}

// TestNumbers: a number is compared as written, in the data as in the policy.
func TestNumbers(t *testing.T) {
	for _, c := range []struct{ reason, rule, holds, fails string }{
		{"one past 2^53", "input.x == 9007199254740993", "9007199254740993", "9007199254740992"},
		{"one past 2^53, with zeros", "input.x == 9007199254740993.0", "9007199254740993.00", "9007199254740992.0"},
		{"one past 2^53 is more", "input.x > 9007199254740992", "9007199254740993", "9007199254740992"},
		{"one past 2^53 is less", "input.x < 9007199254740993", "9007199254740992", "9007199254740993"},
		{"past 64 bits", "input.x <= 18446744073709551617", "18446744073709551617", "18446744073709551618"},
		{"past 64 bits, equal", "input.x == 18446744073709551617", "18446744073709551617", "18446744073709551616"},
		{"past 64 bits, the most", "max(input.x) == 18446744073709551618", "[18446744073709551618,18446744073709551617]", "[18446744073709551617]"},
		{"past 64 bits, a sum", "sum(input.x) == 18446744073709551617", "[18446744073709551616,1]", "[18446744073709551616]"},
		{"ten is not one", "input.x >= 10.0", "10", "1"},
		{"ten is not one, in the data", "input.x <= 1", "1.0", "10.0"},
		{"ten is ten", "input.x == 10.0", "10", "1"},
		{"ten is ten, in the data", "input.x == 10", "10.0", "1.0"},
		{"ten is ten, with an exponent", "input.x == 10", "1e1", "1e2"},
		{"ten is ten, in a list", "input.x == [10.0]", "[1e1]", "[1]"},
		{"ten is ten, in an object", "input.x == {\"a\": 10.0}", `{"a":10.00}`, `{"a":1}`},
		{"ten is ten, in a set", "{10.0, 1} == {x | x := input.x[_]}", "[1,10]", "[1]"},
		{"small ones", "input.x < 1.5e-10", "1.5e-100", "1.5e-10"},
		{"a fraction", "input.x == 7.50", "7.5", "7.05"},
		{"a string that a number is in", "to_number(input.x) == 9007199254740993", `"9007199254740993"`, `"9007199254740992"`},
		{"a number that a string is of", "json.unmarshal(input.x) == 9007199254740993", `"9007199254740993"`, `"9007199254740992"`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			condition, err := rego.Compile("package sigstore\nisCompliant { "+c.rule+" }", rego.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for x, want := range map[string]bool{c.holds: true, c.fails: false} {
				if held, _, err := condition.Holds(exact(`{"x":` + x + `}`)); held != want || err != nil {
					t.Errorf("%s: %t %v; want %t", x, held, err, want)
				}
			}
		})
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[9007199254740993,1.0,10.50,-0,1e2,1e300,0.1]}`: `{"a":[9007199254740993,1,10.5,0,100,1e+300,0.1]}`,
		`"1.0"`: `"1.0"`,
		`1 `:    `1`,
		`1 2`:   "something follows", `{`: "unexpected EOF", `[1e400]`: "is no number", `{"a":1e400}`: "is no number",
	} {
		data, err := rego.Decode([]byte(text))
		got, _ := json.Marshal(data)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}

// TestOrderIsBounded: comparisons are interrupted like all else, and computed numbers
// that would take all memory are refused.
func TestOrderIsBounded(t *testing.T) {
	squares := func(n int) string {
		return strings.Replace(chain(n, "1.5e-300", "$ * $"), "isCompliant", "unused", 1) + "\n"
	}
	for _, c := range []struct{ reason, rules, want string }{
		{"few rounds", "isCompliant { n := numbers.range(1, 10); count([1 | n[i] < n[j]; n[k] < n[i]]) == 120 }", ""},
		{"many rounds", "isCompliant { n := numbers.range(1, 3000); count([1 | n[i] < n[j]; n[k] < n[i]]) == 0 }", "took longer"},
		{"a small number", squares(3) + "isCompliant { 1 > x2 }", ""},
		{"a sum", squares(3) + "isCompliant { sum([x2, 1]) >= 1 }", ""},
		{"a sum of fractions", "isCompliant { sum([1e300, 0.5]) > 1 }", ""},
		{"a sum of fractions beyond bounds", "isCompliant { sum([1e308 * 1e308, 0.5]) > 1 }", "too large"},
	} {
		condition, err := rego.Compile("package sigstore\n"+c.rules, rego.Options{Time: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(c.reason, err)
		}
		if held, _, err := condition.Holds(map[string]any{}); held != (c.want == "") || (err == nil) != held || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: held %t, %v; want %q", c.reason, held, err, c.want)
		}
	}
}
