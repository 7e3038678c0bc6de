package verify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify"
)

func TestFulcioExtension(t *testing.T) {
	const arc = verify.FulcioArc
	tests := []struct {
		reason, name string
		want         string // empty: no extension
	}{
		{"an identifier", arc + "9", arc + "9"},
		{"the first", arc + "1", arc + "1"},
		{"one that Fulcio may add", arc + "99", arc + "99"},
		{"below the first", arc + "0", ""},
		{"a subject alternative name, which is matched as the identity", arc + "7", ""},
		{"another way to write a number", arc + "09", ""},
		{"a sign", arc + "+9", ""},
		{"below the arc", arc + "9.1", ""},
		{"no number", arc + "issuer", ""},
		{"the arc alone", arc, ""},
		{"Fulcio's name", "runnerEnvironment", arc + "11"},
		{"a name in other letters", "RUNNERENVIRONMENT", arc + "11"},
		{"cosign's name, with blanks", "GitHub Workflow Ref", arc + "6"},
		{"the issuer is the newer one", "issuer", arc + "8"},
		{"an unknown name", "workflow", ""},
		{"no name", "", ""},
	}
	for _, test := range tests {
		got, ok := verify.FulcioExtension(test.name)
		if ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s: %q is %q, %t; want %q", test.reason, test.name, got, ok, test.want)
		}
	}
}

// TestAdmitsExpectation: a rejection by time has the expected time.
func TestAdmitsExpectation(t *testing.T) {
	from, until := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		authority verify.Authority
		want      string
	}{
		{verify.Authority{NotBefore: from, NotAfter: until}, "signed from 2026-01-01T00:00:00Z until 2026-02-01T00:00:00Z"},
		{verify.Authority{NotBefore: from}, "signed from 2026-01-01T00:00:00Z"},
		{verify.Authority{NotAfter: until}, "signed until 2026-02-01T00:00:00Z"},
	}
	for _, test := range tests {
		if rejection := test.authority.Admits(time.Time{}, nil); rejection == nil || rejection.Expected != test.want {
			t.Errorf("got %v, want %q to be expected", rejection, test.want)
		}
	}
}

// TestNestedExpression: the anchored expression is nested deeper than the written one, and may
// be too deep only then. Nothing is matched by half an expression.
func TestNestedExpression(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("(", depth) + "a" + strings.Repeat(")", depth) }
	deep := 1
	for ; deep < 2000; deep++ {
		if _, err := verify.Expression(nested(deep)); err != nil {
			break
		}
	}
	if m, err := verify.Expression(nested(deep - 1)); err != nil || !m.Match("a") {
		t.Errorf("depth %d: got %v, want a match", deep-1, err)
	}
	for depth := deep; depth < deep+4; depth++ {
		if m, err := verify.Expression(nested(depth)); err == nil {
			t.Errorf("depth %d was accepted, and matches: %t", depth, m.Match("a"))
		}
	}
}

// TestWildcardWithoutOne: the same authority has the same hash, in whichever way its
// identity was written.
func TestWildcardWithoutOne(t *testing.T) {
	if verify.Wildcard("a.c") != verify.Exactly("a.c") {
		t.Error("a wildcard pattern without a wildcard is no text")
	}
	if verify.Wildcard("a*") == verify.Exactly("a*") {
		t.Error("a wildcard pattern is a text")
	}
}
