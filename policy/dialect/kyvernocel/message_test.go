package kyvernocel_test

import (
	"fmt"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

func TestMessageOf(t *testing.T) {
	longest := strings.Repeat("x", kyvernocel.MaxMessage)
	scope := scopeOf(t)
	about := scope.NewActivation(cel.Inputs{More: &kyvernocel.Seen{Subject: &policy.Subject{Object: policy.ContentOf(map[string]any{"kind": "Pod"})}}})
	for _, c := range []struct{ reason, expression, want string }{
		{"a text", "'a ' + object.kind", "a Pod"},
		{"space around it", "' a b\\n'", "a b"},
		{"the longest text", fmt.Sprintf("%q", longest), longest},
		{"one that is longer", fmt.Sprintf("%q", longest+"x"), ""},
		{"nothing", "''", ""},
		{"space alone", "' \\t\\n '", ""},
		{"an error", "'a' + object.none", ""},
	} {
		program, err := scope.Compile("at", c.expression, celgo.StringType)
		if err != nil {
			t.Fatal(c.reason, err)
		}
		if got := kyvernocel.MessageOf(t.Context(), program, about); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, kyvernocel.Shorten(got), kyvernocel.Shorten(c.want))
		}
	}
	if got := kyvernocel.MessageOf(t.Context(), nil, about); got != "" {
		t.Errorf("no expression: %q", got)
	}
}
