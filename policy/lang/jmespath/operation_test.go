package jmespath_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// TestOperations: a comparison of the request's operation with a text that is none has one result,
// and is refused.
func TestOperations(t *testing.T) {
	for _, c := range []struct {
		expression string
		ok         bool
		reason     string
	}{
		{"request.operation == 'CREATE'", true, "an operation"},
		{"request.operation == 'Create'", false, "in another case"},
		{"'Create' != request.operation", false, "on the right"},
		{"(request.operation || 'BACKGROUND') == 'BACKGROUND'", true, "its default"},
		{"(request.operation || 'BACKGROUND') == 'NONE'", false, "beside its default"},
		{"(request.operation || request.name) == 'web'", true, "a default that is not known"},
		{"request.operation == request.name", true, "a text that is not known"},
		{"request.operation == null", true, "no text"},
		{"contains(['CREATE', 'UPDATE'], request.operation)", true, "one of several"},
		{"contains(['CREATE', 'Update'], request.operation)", false, "one of several is none"},
		{"contains(`[\"delete\"]`, request.operation)", false, "in a literal"},
		{"contains(request.operation, 'ATE')", true, "a part of it"},
		{"a[?b && request.operation == 'Create']", true, "a member of the element"},
		{"a || request.operation == 'Create'", false, "inside of an expression"},
		{"object.operation == 'Create'", true, "another object's"},
	} {
		if _, err := newEngine(t).Compile(c.expression); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "request.operation is never") {
			t.Errorf("%s: %s: %v", c.reason, c.expression, err)
		}
	}
	if _, err := newEngine(t).CompilePieces([]jmespath.Piece{{Text: "request.operation == '"}, {Hole: true}, {Text: "'"}}); err != nil {
		t.Errorf("a text with a variable: %v", err)
	}
}
