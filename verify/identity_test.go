package verify_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/verify"
)

// TestBeside: where what a policy expects looks like what was found, the message names the
// difference.
func TestBeside(t *testing.T) {
	const (
		found = "https://ci.example/shop/web@refs/heads/main"
		part  = ", which must match the whole text and matches a part of it"
	)
	for _, c := range []struct {
		reason  string
		matcher verify.Matcher
		found   []string
		want    string
	}{
		{"another text", verify.Exactly("https://ci.example/other"), []string{found}, "https://ci.example/other"},
		{"a line break at the end", verify.Exactly(found + "\n"), []string{found}, `"` + found + `\n" with its white space`},
		{"a blank at the start", verify.Wildcard(" https://*"), []string{found}, `" https://*" with its white space`},
		{"two blanks", verify.Exactly("a  b"), []string{"a b"}, `"a  b" with its white space`},
		{"one blank between words is seen", verify.Exactly("a b"), []string{"a c"}, "a b"},
		{"a part of the text", expression(t, "ci.example/shop"), []string{found}, "/ci.example/shop/" + part},
		{"a part of the second text", expression(t, "shop"), []string{"mail@example", found}, "/shop/" + part},
		{"the start alone", expression(t, "^https://ci.example/"), []string{found}, "/^https://ci.example//" + part},
		{"no part", expression(t, "other"), []string{found}, "/other/"},
		{"the whole of one text", expression(t, ".*main"), []string{"main-", found}, "/.*main/"},
		{"nothing found", expression(t, "main"), nil, "/main/"},
	} {
		if got := c.matcher.Beside(c.found...); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
	issuer := "https://issuer.example"
	keyless := verify.Keyless{Identities: []verify.Identity{
		{Subject: expression(t, "shop"), Issuer: verify.Exactly(issuer)}, {Subject: verify.Exactly("b"), Issuer: verify.Exactly(issuer + "\n")},
	}}
	want := "/shop/" + part + ` (https://issuer.example) or b ("https://issuer.example\n" with its white space)`
	if got := keyless.Beside(issuer, []string{found}); got != want {
		t.Errorf("identities: %s, want %s", got, want)
	}
}

func TestAnnotationsThatLookAlike(t *testing.T) {
	for _, c := range []struct{ reason, wanted, signed, expected, found string }{
		{"a line break", "prod\n", "prod", `env="prod\n" with its white space`, "env=prod"},
		{"a blank in the signed one", "prod", "prod ", "env=prod", `env="prod " with its white space`},
		{"another value", "prod", "test", "env=prod", "env=test"},
	} {
		r := verify.MissingAnnotation(map[string]string{"env": c.wanted}, map[string]string{"env": c.signed})
		if r == nil || r.Expected != c.expected || r.Found != c.found {
			t.Errorf("%s: %v", c.reason, r)
		}
	}
	if r := verify.MissingAnnotation(map[string]string{"env": "prod"}, map[string]string{"env": "prod"}); r != nil {
		t.Error(r)
	}
}
