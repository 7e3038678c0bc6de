package mutants

import (
	"slices"
	"strings"
	"testing"
)

func TestMutators(t *testing.T) {
	tests := []struct {
		reason, body string
		want         []string
	}{
		{"an if is taken away and its comparison inverted", "if a == b { return false }",
			[]string{"a == b by !=", "never a == b", "inverted false"}},
		{"a bound is moved, too", "if a < b { c() }",
			[]string{"a < b by <=", "a < b by >=", "never a < b"}},
		{"a call is inverted", "if f(a) { c() }",
			[]string{"inverted f(a)", "never f(a)"}},
		{"each side is left out", "if ok && !f(a) { c() }",
			[]string{"inverted !f(a)", "inverted ok", "never ok && !f(a)", "without !f(a)", "without ok"}},
		{"cases of a switch that has no value", "switch { case ok, a > b: c(); default: c() }",
			[]string{"a > b by <=", "a > b by >=", "inverted ok", "never a > b", "never ok"}},
		{"no cases of a switch that has one", "switch a { case 1: c() }", nil},
		{"an answer is inverted, where it is a bool", "return ok", []string{"inverted ok"}},
		{"what decides without a variable", "return a == b || g()",
			[]string{"a == b by !=", "inverted g()", "without a == b", "without g()"}},
		{"no check at all", "c()", nil},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			text := "package p\n\nfunc f() bool {\n" + test.body + "\n}\n"
			s, err := parse("p.go", []byte(text), &counter{names: map[string]int{}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range s.units {
				for _, m := range u.mutants {
					name := strings.Split(m.Name, " | ")
					got = append(got, name[len(name)-1])
				}
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestNamesDiffer: two checks that are written the same have names of their own, so that
// one cannot hide behind the other's reason.
func TestNamesDiffer(t *testing.T) {
	const text = "package p\n\nfunc f() {\nif ok { a() }\nif ok { a() }\n}\n"
	s, err := parse("p.go", []byte(text), &counter{names: map[string]int{}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.units[0].mutants {
		got = append(got, m.Name)
	}
	const never = "p.go f | if ok { a() } | never ok"
	if !slices.Contains(got, never) || !slices.Contains(got, never+" (2)") || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 4 {
		t.Errorf("got %q", got)
	}
}
