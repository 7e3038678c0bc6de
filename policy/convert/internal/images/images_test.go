package images

import "testing"

// TestTests shows how tests are written; what they mean is tested where they are
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
	} {
		if got := row.test.cel(); got != row.cel {
			t.Errorf("got %s, want %s", got, row.cel)
		}
	}
}

// TestScopes has which texts are scopes, and which of two is the more specific.
func TestScopes(t *testing.T) {
	for text, valid := range map[Scope]bool{
		"example.com": true, "example.com:5000": true, "example.com/a/b": true, "example.com/a:v1": true, "*.example.com": true,
		"*.example.com:5000": false, "example.com/A": false, "example.com/a*": false, "*": false, "example.com/a@sha256:1": false,
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
		{"index.docker.io/library/x", "docker.io/library", true},
	} {
		if got := row.one.Within(row.other); got != row.within {
			t.Errorf("%q lies within %q: %v, want %v", row.one, row.other, got, row.within)
		}
	}
}
