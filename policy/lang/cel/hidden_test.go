package cel_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestHidden: other errors in an expression that depends on a value known to be
// left out, and none where there is no other.
func TestHidden(t *testing.T) {
	left := errors.New("left out")
	known := func(err error) bool {
		unknown, ok := errors.AsType[*cel.UnknownError](err)
		return ok && !slices.ContainsFunc(unknown.Gaps, func(gap error) bool { return !errors.Is(gap, left) })
	}
	functions := map[string]cel.Call{
		"verify": func(context.Context, []ref.Val) (any, error) {
			return cel.Count{Upper: 2, Gaps: []error{left}}, nil
		},
		"payload": func(_ context.Context, arguments []ref.Val) (any, error) {
			if arguments[0].Value() == "away" {
				return nil, &cel.UnknownError{Gaps: []error{errors.New("the registry is away")}}
			}
			return nil, &cel.UnknownError{Gaps: []error{left}}
		},
	}
	const count, data, none, away = "verify('a', []) > 0", "payload('a', 'b').c == 1", "object.none == 1", "payload('away', 'b') == 1"
	for _, row := range []struct{ reason, expression, hidden string }{
		{"a count alone", count, ""},
		{"a count, and what holds", count + " && object.replicas == 3", ""},
		{"a count, and a missing member", count + " && " + none, "no such key"},
		{"a missing member, and a count", none + " && " + count, "no such key"},
		{"a count of which one end holds", count + " || " + none, ""},
		{"a count of which the other does", "verify('a', []) == 0 || " + none, ""},
		{"a count that never holds", "verify('a', []) > 2 && " + none, ""},
		{"what cannot be looked at", count + " && " + away, "the registry is away"},
		{"data alone", data, ""},
		{"data, and what holds", data + " && object.replicas == 3", ""},
		{"data, and a missing member", data + " && " + none, "no such key"},
		{"data, or a missing member", data + " || " + none, "no such key"},
		{"data, and what cannot be looked at", data + " && " + away, "the registry is away"},
		{"a missing member that does not matter", "(object.replicas == 3 || " + none + ") && " + data, ""},
		{"below a negation", "!(" + data + " && " + none + ")", "no such key"},
		{"below a condition", "(" + data + " && " + none + ") ? true : false", "no such key"},
		{"in a step of a loop", "images.containers.all(i, " + data + " && " + none + ")", "no such key"},
		{"a variable of data alone", "variables.data", ""},
		{"a variable", "variables.both && object.replicas == 3", "spec.variables"},
		{"a variable with a value that does not matter", "(variables.none || object.replicas == 3) && variables.data", ""},
		{"an index that is not there, at one end of a count", "(verify('a', []) == 0 ? payload('a', 'b') : dyn([true]))[2]", "index out of bounds"},
		{"a missing member, at an end of a count that another part does not reach", "verify('a', []) == 0 ? " + data + " : " + none, "no such key"},
		{"at a value between the ends", "verify('a', []) == 1 ? " + none + " : " + data, "no such key"},
		{"what holds between the ends", "verify('a', []) == 1 ? object.replicas == 3 : " + data + " && " + none, ""},
		{"one that is there", "(verify('a', []) == 0 ? payload('a', 'b') : dyn([true]))[0]", ""},
		{"a variable beside it", "variables.data && " + none, "no such key"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			s := newScope(t)
			for name, expression := range map[string]string{"data": data, "both": data + " && " + none, "none": none} {
				if err := s.Declare("spec.variables", name, expression); err != nil {
					t.Fatal(err)
				}
			}
			in := inputs()
			in.Functions = functions
			p, a := compile(t, s, row.expression), s.NewActivation(in)
			for range 2 { // the same again
				_, _ = p.Eval(t.Context(), a)
				err := p.Hidden(t.Context(), a, known)
				if (err == nil) != (row.hidden == "") || err != nil && !strings.Contains(err.Error(), row.hidden) {
					t.Errorf("%s hides %v, want %q", row.expression, err, row.hidden)
				}
			}
			ended, end := context.WithCancel(t.Context())
			end()
			if err := p.Hidden(ended, a, known); !errors.Is(err, context.Canceled) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}
