package mutants_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/test/mutants"
)

// guarded is a package with every kind of check that is mutated.
const guarded = `package guarded

import (
	"errors"
	"strings"
)

// Limit is how much is let in.
const Limit = 3

func Check(name string, size int, known map[string]bool) error {
	if err := named(name); err != nil {
		return err
	}
	switch {
	case size > Limit:
		return errors.New("too large")
	case known[name]:
		return errors.New("known already")
	}
words:
	for _, word := range strings.Fields(name) {
		for _, letter := range word {
			if letter == '!' {
				continue words
			}
		}
		if strings.TrimSuffix(word, "!") == "bad" {
			return errors.New("a bad word")
		}
	}
	return owned(name)
}

func named(name string) error {
	if name == "" || name == "." {
		return errors.New("no name")
	}
	return nil
}

func owned(name string) error {
	if Foreign(name) {
		return errors.New("foreign")
	}
	return nil
}

func Foreign(name string) bool { return strings.HasPrefix(name, "foreign") }
`

// tests of the package, that miss the bound, a name and the last line of Check.
const missing = `package guarded

import "testing"

func TestCheck(t *testing.T) {
	known := map[string]bool{"here": true}
	for _, good := range []string{"a good name", "a bad! name"} {
		if err := Check(good, 1, known); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "here", "a bad name"} {
		if Check(bad, 1, known) == nil {
			t.Errorf("%q was let in", bad)
		}
	}
	if Check("large", Limit+1, known) == nil {
		t.Error("a size above the limit was accepted")
	}
}

func TestForeign(t *testing.T) {
	if !Foreign("foreign one") || Foreign("ours") {
		t.Error("foreign names have the prefix")
	}
}
`

// whole are the tests that were missing.
const whole = `
func TestRest(t *testing.T) {
	if Check("as much as may be", Limit, nil) != nil {
		t.Error("a size within the limit was refused")
	}
	if Check(".", 1, nil) == nil {
		t.Error("a dot was let in")
	}
	if Check("foreign", 1, nil) == nil {
		t.Error("a foreign name was accepted")
	}
}
`

func TestMutants(t *testing.T) {
	survivors := []string{
		`guarded.go Check | case size > Limit: | size > Limit by >=`,
		`guarded.go Check | return owned(name) | no answer owned(name)`,
		`guarded.go named | if name == "" || name == "." { | without name == "."`,
		`guarded.go owned | if Foreign(name) { | never Foreign(name)`,
	}
	tests := []struct {
		reason, tests string
		match         *regexp.Regexp
		want          []string
	}{
		{reason: "four checks that no test minds", tests: missing, want: survivors},
		{reason: "tests for the four", tests: missing + whole},
		{reason: "only those of one function", tests: missing, match: regexp.MustCompile(`^guarded\.go owned `), want: survivors[3:]},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			p, err := mutants.Open(t.Context(), module(t, test.tests), "guarded")
			if err != nil {
				t.Fatal(err)
			}
			result, err := p.Run(t.Context(), nil, test.match, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(result.Survived)
			if !slices.Equal(result.Survived, test.want) {
				t.Errorf("got %q, want %q", result.Survived, test.want)
			}
			if result.Tried != result.Killed+result.TimedOut+len(result.Survived) {
				t.Errorf("got %+v, which does not add up", result)
			}
		})
	}
}

// TestMutantsOfOthers: what a package's own tests do not mind may be minded by others'.
func TestMutantsOfOthers(t *testing.T) {
	folder := module(t, "package guarded\n")
	write(t, folder, "user/user_test.go", `package user

import (
	"testing"

	"example.test/module/guarded"
)

func TestForeign(t *testing.T) {
	if !guarded.Foreign("foreign one") || guarded.Foreign("ours") {
		t.Error("foreign names have the prefix")
	}
}
`)
	match := regexp.MustCompile(`^guarded\.go Foreign `)
	for _, test := range []struct {
		others   []string
		survived int
	}{{nil, 1}, {[]string{"user"}, 0}} {
		p, err := mutants.Open(t.Context(), folder, "guarded")
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Run(t.Context(), test.others, match, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Survived) != test.survived || result.Tried != 1 {
			t.Errorf("with the tests of %q: got %+v, want %d to survive", test.others, result, test.survived)
		}
	}
}

// TestFailingTests: where tests fail without any mutant, every mutant would seem killed.
func TestFailingTests(t *testing.T) {
	p, err := mutants.Open(t.Context(), module(t, missing+"\nfunc TestNot(t *testing.T) { t.Error(\"as always\") }\n"), "guarded")
	if err != nil {
		t.Fatal(err)
	}
	if result, err := p.Run(t.Context(), nil, nil, io.Discard); err == nil {
		t.Errorf("got %+v, want an error", result)
	}
}

// module makes a module of the guarded package and its tests.
func module(t *testing.T, tests string) string {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, "go.mod", "module example.test/module\n\ngo 1.26\n")
	write(t, folder, "guarded/guarded.go", guarded)
	write(t, folder, "guarded/guarded_test.go", tests)
	return folder
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	file := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
