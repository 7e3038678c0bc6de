package mutants_test

import (
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/test/mutants"
)

func TestCompare(t *testing.T) {
	const first, second = "a.go F | if x { | never x", "a.go F | if y { | never y"
	list := func(reason string, names ...string) mutants.Survivors {
		return mutants.Survivors{{Reason: reason, Mutants: names}}
	}
	tests := []struct {
		reason   string
		listed   mutants.Survivors
		survived []string
		want     []string
	}{
		{reason: "what survives is listed", listed: list("words for people", first), survived: []string{first}},
		{reason: "nothing survives, and nothing is listed"},
		{
			reason: "one more survives", listed: list("words for people", first), survived: []string{first, second},
			want: []string{"survived, and not listed: " + second},
		},
		{
			reason: "a listed one is killed", listed: list("words for people", first, second), survived: []string{second},
			want: []string{"listed, and killed now or gone: " + first},
		},
		{
			reason: "no reason is given", listed: list(" ", first), survived: []string{first},
			want: []string{`survivors without a reason: ["` + first + `"]`},
		},
		{
			reason: "one is listed twice, which would hide that a second one of its name is gone", listed: list("words", first, first), survived: []string{first},
			want: []string{"listed twice: " + first},
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if got := test.listed.Compare(test.survived); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	plan := mutants.Plan{Packages: []mutants.Chosen{{Path: "verify"}, {Path: "verify/cosign"}, {Path: "verified"}}, Later: []mutants.Chosen{{Path: "policy"}}}
	tests := []struct {
		pattern string
		want    []string // none: refused
	}{
		{"verify", []string{"verify"}},
		{"./verify/cosign/", []string{"verify/cosign"}},
		{"verify/...", []string{"verify", "verify/cosign"}},
		{"policy", []string{"policy"}}, // although it is for later
		{"ver", nil},
		{"verify/notation", nil},
	}
	for _, test := range tests {
		chosen, err := plan.Select(test.pattern)
		var got []string
		for _, c := range chosen {
			got = append(got, c.Path)
		}
		if !slices.Equal(got, test.want) || (err != nil) != (test.want == nil) {
			t.Errorf("%s: got %q, %v, want %q", test.pattern, got, err, test.want)
		}
	}
	if all, err := plan.Select(); err != nil || len(all) != 3 {
		t.Errorf("without a pattern: got %v, %v, want all but the later ones", all, err)
	}
}

func TestFiles(t *testing.T) {
	if all := (mutants.Chosen{Path: "verify"}).Match(); all != nil {
		t.Errorf("a package without files: got %s, want all", all)
	}
	some := mutants.Chosen{Path: "verify", Files: []string{"a.go", "b.go"}}.Match()
	for name, want := range map[string]bool{"a.go F | x | never x": true, "b.go F | x | never x": true, "aa.go F | x | never x": false, "c.go a.go | x | never x": false, "aXgo F | x | never x": false} {
		if some.MatchString(name) != want {
			t.Errorf("%s is of the files: %t", name, !want)
		}
	}
}
