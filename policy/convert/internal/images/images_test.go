package images

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTests covers the output; the semantics are tested where the expressions are
// evaluated.
func TestTests(t *testing.T) {
	one, two := Pattern("^a"), Pattern("b$")
	for _, row := range []struct {
		test Test
		cel  string
	}{
		{All{}, "true"}, {Some{}, "false"}, {one, "name.matches(r'^a')"}, {Not{one}, "!name.matches(r'^a')"},
		{All{one, two}, "name.matches(r'^a') && name.matches(r'b$')"}, {Pattern("it's"), `name.matches("it's")`},
		{Some{one, All{one, two}}, "name.matches(r'^a') || (name.matches(r'^a') && name.matches(r'b$'))"},
		{All{one, Some{one, two}}, "name.matches(r'^a') && (name.matches(r'^a') || name.matches(r'b$'))"},
		{Not{Some{one, two}}, "!(name.matches(r'^a') || name.matches(r'b$'))"},
		{Some{two, All{one}}, "name.matches(r'b$') || name.matches(r'^a')"}, {All{two, Some{one}}, "name.matches(r'b$') && name.matches(r'^a')"},
		{Some{All{one, two}}, "name.matches(r'^a') && name.matches(r'b$')"}, {All{Some{one, two}}, "name.matches(r'^a') || name.matches(r'b$')"},
	} {
		if got := row.test.cel(); got != row.cel {
			t.Errorf("got %s, want %s", got, row.cel)
		}
	}
}

const digest = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// TestScopes has which texts are scopes, and which of two is the more specific.
func TestScopes(t *testing.T) {
	for text, valid := range map[Scope]bool{
		"example.com": true, "example.com:5000": true, "example.com/a/b": true, "example.com/a:v1": true, "*.example.com": true,
		"*.example.com:5000": false, "*.": false, "*.example.com/a": false, "": false, "example.com/a:": false, "example.com/a:-": false, "Example.com": false,
		"example.com/a@sha256:" + Scope(digest): true, "example.com/A@sha256:" + Scope(digest): false, "example.com/A:v1": false, "example.com/A": false, "example.com/a*": false, "*": false, "example.com/a@sha256:1": false,
	} {
		if text.Valid() != valid {
			t.Errorf("%q is a scope: %v, want %v", text, !valid, valid)
		}
	}
	for _, row := range []struct {
		one, other Scope
		within     bool
	}{
		{"example.com/a", "example.com", true}, {"example.com", "example.com/a", false}, {"example.com", "example.com", false},
		{"example.com/ab", "example.com/a", false}, {"example.com/a:v1", "example.com/a", true}, {"example.com/a:v10", "example.com/a:v1", false},
		{"r.example.com/a", "*.example.com", true}, {"notexample.com", "*.example.com", false}, {"example.com", "", true},
		{"index.docker.io/library/x", "docker.io/library", true}, {"", "example.com", false}, {"", "", false}, {"", "*.example.com", false}, {"", "example.com/a", false}, {"/a", "example.com/a", false},
		{"*.r.example.com", "*.example.com", true}, {"*.example.com", "*.r.example.com", false}, {"r.example.com:5000/a", "*.example.com", true}, {"example.com", "*.example.com", false},
		{"example.com:5000", "example.com", false}, {"example.com/a@sha256:" + digest, "example.com/a", true}, {"example.com/a:v1@sha256:" + digest, "example.com/a:v1", false},
	} {
		if got := row.one.Within(row.other); got != row.within {
			t.Errorf("%q lies within %q: %v, want %v", row.one, row.other, got, row.within)
		}
	}
}

// TestUnmatched: a registry has one name here, and another one of a scope would match nothing.
func TestUnmatched(t *testing.T) {
	for scope, unmatched := range map[string]bool{
		"docker.io": false, "index.docker.io/acme": false, "registry-1.docker.io": true, "registry-1.docker.io/acme/web:v1": true, "registry.hub.docker.com/acme": true, "registry-2.docker.io": false,
		"*.docker.io": true, "*.hub.docker.com": true, "*.docker.com": true, "*.io": false, "*.com": false, "*.docker.example": false,
		"a.io": false, "a.io:5000/b": false, "a.io:443/b": true, "a.io:05000": true, "localhost/a": false, "10.0.0.5:5000": false, "10.5/a": true, "a.io./b": true,
	} {
		if got := Unmatched(scope); (got != "") != unmatched {
			t.Errorf("%q: %q, want that it matches nothing: %t", scope, got, unmatched)
		}
	}
}

// TestHubPaths: a pattern that matches Docker Hub by one of its names has the patterns of the paths there.
func TestHubPaths(t *testing.T) {
	for _, row := range []struct {
		syntax        Wildcards
		pattern, want string
	}{
		{Kyverno, "registry-?.docker.io/acme/*", "acme/*"}, {Kyverno, "*.docker.io/acme/*", "acme/*"}, {Kyverno, "*.io/nginx:*", "nginx:*"}, {Kyverno, "registry*", "*"}, {Kyverno, "reg*x/y", "*x/y"},
		{Kyverno, "*", ""}, {Kyverno, "*/acme/*", ""}, {Kyverno, "docker.io/acme/*", ""}, {Kyverno, "ghcr.io/*", ""}, {Kyverno, "registry-?.docker.example/*", ""},
		{PolicyController, "registry-*.docker.io/acme/*", "acme/*"}, {PolicyController, "reg*x/y", ""}, {PolicyController, "reg**x/y", "**x/y"}, {PolicyController, "*.com/**", "**"}, {PolicyController, "**", ""}, {PolicyController, "registry-?.docker.io/x", ""},
	} {
		if got := strings.Join(row.syntax.HubPaths(row.pattern), " "); got != row.want {
			t.Errorf("%s: %q, want %q", row.pattern, got, row.want)
		}
	}
}

// TestTakes has which images a scope takes, by their names.
func TestTakes(t *testing.T) {
	for _, row := range []struct {
		scope, name string
		takes       bool
		reason      string
	}{
		{"example.com", "example.com/a:v1", true, "a registry's image"},
		{"example.com", "example.com.evil/a:v1", false, "another registry that begins so"},
		{"example.com", "evil/example.com/a:v1", false, "a repository that is called so"},
		{"example.com/a", "example.com/a:v1", true, "a repository's tag"},
		{"example.com/a", "example.com/a/b@sha256:0", true, "what lies below it"},
		{"example.com/a", "example.com/ab:v1", false, "another repository that begins so"},
		{"example.com/a:v1", "example.com/a:v1", true, "the tag"},
		{"example.com/a:v1", "example.com/a:v10", false, "another tag that begins so"},
		{"example.com:5000", "example.com:5000/a:v1", true, "a registry with a port names no tag"},
		{"example.com/a@sha256:" + digest, "example.com/a@sha256:" + digest, true, "the digest"},
		{"example.com/a@sha256:" + digest, "example.com/a@sha256:" + digest + "0", false, "another digest"},
		{"*.example.com", "r.example.com:5000/a:v1", true, "a registry of the domain"},
		{"*.example.com", "example.com/a:v1", false, "the domain itself"},
		{"*.example.com", "r.examplexcom/a:v1", false, "a dot is a dot"},
		{"index.docker.io/library", "docker.io/library/nginx:1", true, "the hub by its other name"},
		{"index.docker.iox/library", "docker.iox/library/nginx:1", false, "and no other registry that begins so"},
	} {
		pattern, ok := Scope(row.scope).Test().(Pattern)
		if !ok {
			t.Fatalf("%s: %q is no pattern", row.reason, row.scope)
		}
		if got := regexp.MustCompile(string(pattern)).MatchString(row.name); got != row.takes {
			t.Errorf("%s: %q takes %s: %v, want %v", row.reason, row.scope, row.name, got, row.takes)
		}
	}
	if every, ok := Scope("").Test().(All); !ok || len(every) > 0 {
		t.Error("the empty scope takes every image")
	}
	if Hub("index.docker.io") != "docker.io" {
		t.Errorf("the hub alone is %q", Hub("index.docker.io"))
	}
	for name, want := range map[string]bool{"example.com/a:v1": true, "example.com/a": true, "example.com/ab": false, "example.com/a/b:v1": false} {
		if got := regexp.MustCompile(string(RepositoryScope("example.com/a"))).MatchString(name + "@sha256:" + digest); got != want {
			t.Errorf("the repository example.com/a takes %s: %v, want %v", name, got, want)
		}
	}
}

// TestSelections combines the images that a rule selects with those that it excludes.
func TestSelections(t *testing.T) {
	one, two, first := Pattern("^a"), Pattern("b$"), []Test{Pattern("c")}
	for _, row := range []struct {
		reason string
		takes  Test
		before []Test
		cel    string
	}{
		{"every image", All{}, nil, "true"},
		{"every image but some", All{}, first, "!name.matches(r'c')"},
		{"images, and none left out", one, nil, "name.matches(r'^a')"},
		{"images but some", one, first, "name.matches(r'^a') && !name.matches(r'c')"},
		{"images by two tests", All{one, two}, first, "name.matches(r'^a') && name.matches(r'b$') && !name.matches(r'c')"},
		{"images by either test", Some{one, two}, nil, "name.matches(r'^a') || name.matches(r'b$')"},
		{"an exclusion applies to both", Some{one, two}, first, "(name.matches(r'^a') || name.matches(r'b$')) && !name.matches(r'c')"},
		{"one of one", Some{one}, first, "name.matches(r'^a') && !name.matches(r'c')"},
		{"no image", Some{}, first, "false && !name.matches(r'c')"},
	} {
		expression := Selection{Takes: row.takes, Before: row.before}.Reference("").Expression
		_, got, _ := strings.Cut(expression, ".exists(name, ")
		got = strings.ReplaceAll(got, "\n    ", " ")
		if got != row.cel+")" {
			t.Errorf("%s: got %s, want %s)", row.reason, got, row.cel)
		}
	}
}

// TestScopesWithin leaves out of a scope those that are more specific, and no others.
func TestScopesWithin(t *testing.T) {
	list := []Scope{"example.com/a", "", "example.com", "example.org/a", "example.com/b:v1"}
	for than, want := range map[Scope][]Test{
		"":              {list[0].Test(), list[2].Test(), list[3].Test(), list[4].Test()},
		"example.com":   {list[0].Test(), list[4].Test()},
		"example.com/a": nil,
	} {
		if got := ScopesWithin(list, than); !slices.Equal(got, want) {
			t.Errorf("within %q lie %v, want %v", than, got, want)
		}
	}
}

// TestSpellings writes names as a source compares them: with a tag beside a digest, and
// the hub by its other name, where it does so.
func TestSpellings(t *testing.T) {
	for _, row := range []struct {
		reason     string
		spelling   Spelling
		has, lacks string
	}{
		{"by identity", ByIdentity, `? "docker.io" :`, `? "index.docker.io" :`},
		{"a digest alone", ByIdentity, `ref.find("@.*$")`, `ref.find("(:[^/:@]+)?(@[^/]*)?$")`},
		{"as written", AsWritten, `? "index.docker.io" :`, `? "docker.io" :`},
		{"a tag beside a digest", AsWritten, `ref.find("(:[^/:@]+)?(@[^/]*)?$")`, `ref.find("@.*$")`},
	} {
		got := Selection{Spelling: row.spelling, Takes: All{}}.Reference("why")
		if got.Comment != "why" || !strings.Contains(got.Expression, row.has) || strings.Contains(got.Expression, row.lacks) {
			t.Errorf("%s: %q and %s", row.reason, got.Comment, got.Expression)
		}
	}
}

// TestQuote keeps a text's value inside its quotes.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{`a\.b`: `r'a\.b'`, "a\nb": `"a\nb"`, "a\rb": `"a\rb"`, `a'b"`: `"a'b\""`} {
		if got := Quote(text); got != want {
			t.Errorf("%q is written %s, want %s", text, got, want)
		}
	}
}
