package cel_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

var errRegistry = errors.New("registry.example does not answer")

// counts answers verify(image, attestors) by the image's name: "0-2" is a count
// between the two with a gap, "1" is one.
func counts(_ context.Context, arguments []ref.Val) (any, error) {
	var count cel.Count
	name := fmt.Sprint(arguments[0].Value())
	if n, _ := fmt.Sscanf(name, "%d-%d", &count.Lower, &count.Upper); n == 2 {
		count.Gaps = []error{fmt.Errorf("%s: %w", name, errRegistry)}
		return count, nil
	}
	_, err := fmt.Sscanf(name, "%d", &count.Lower)
	count.Upper = count.Lower
	return count, err
}

func TestCount(t *testing.T) {
	const unknown = "unknown"
	tests := []struct{ reason, expression, want string }{
		{"a known count is an int", "v('1') > 0", "true"},
		{"none is none", "v('0') > 0", "false"},
		{"it may be none, and may be more", "v('0-2') > 0", unknown},
		{"at least one is above zero", "v('1-2') > 0", "true"},
		{"at most one is not above one", "v('0-1') > 1", "false"},
		{"at least none, always", "v('0-2') >= 0", "true"},
		{"less than", "v('0-2') < 3", "true"},
		{"less than, unknown", "v('0-2') < 2", unknown},
		{"at most", "v('0-2') <= 2", "true"},
		{"equal to an impossible count", "v('0-2') == 3", "false"},
		{"equal to a possible count", "v('0-2') == 1", unknown},
		{"different from an impossible count", "v('0-2') != 3", "true"},
		{"different from a possible count", "v('0-2') != 0", unknown},
		{"on the right of less", "0 < v('1-2')", "true"},
		{"on the right of less, unknown", "0 < v('0-2')", unknown},
		{"on the right of at least", "2 >= v('0-2')", "true"},
		{"on the right of equal", "1 == v('0-2')", unknown},
		{"compared with a double", "v('1-2') > 0.5", "true"},
		{"compared with itself", "v('0-2') == v('0-2')", "true"},
		{"compared with another", "v('0-2') == v('0-3')", unknown},
		{"or true", "v('0-1') > 0 || true", "true"},
		{"or false", "v('0-1') > 0 || false", unknown},
		{"and false", "v('0-1') > 0 && false", "false"},
		{"and true", "true && v('0-1') > 0", unknown},
		{"negated", "!(v('0-1') > 0)", unknown},
		{"either way of a condition", "v('0-1') > 0 ? true : true", "true"},
		{"two ways of a condition", "v('0-1') > 0 ? true : false", unknown},
		{"always one or the other", "v('0-1') > 0 || v('0-1') == 0", "true"},
		{"all are signed", "['1', '2-3'].map(i, v(i)).all(e, e > 0)", "true"},
		{"one certainly is not", "['0', '0-1'].map(i, v(i)).all(e, e > 0)", "false"},
		{"one certainly is not, in the other order", "['0-1', '0'].map(i, v(i)).all(e, e > 0)", "false"},
		{"one may be not", "['1', '0-1'].map(i, v(i)).all(e, e > 0)", unknown},
		{"all without a map", "['1', '0-1'].all(i, v(i) > 0)", unknown},
		{"some is", "['1', '0-1'].map(i, v(i)).exists(e, e > 0)", "true"},
		{"none may be", "['0', '0-1'].map(i, v(i)).exists(e, e > 0)", unknown},
		{"exactly one", "['1', '0-1'].map(i, v(i)).exists_one(e, e > 0)", unknown},
		{"exactly one is one", "['1', '0'].map(i, v(i)).exists_one(e, e > 0)", "true"},
		{"a sum that is enough", "['1', '0-1'].map(i, v(i)).sum() >= 1", "true"},
		{"a sum that may be enough", "['1', '0-1'].map(i, v(i)).sum() >= 2", unknown},
		{"arithmetic that is enough", "v('0-1') + 1 > 0", "true"},
		{"arithmetic that may be", "1 + v('0-1') > 1", unknown},
		{"times zero", "v('0-1') * 0 == 0", "true"},
		{"filtered", "['1', '0-1'].filter(i, v(i) > 0).size() >= 1", "true"},
		{"filtered, unknown", "['1', '0-1'].filter(i, v(i) > 0).size() == 2", unknown},
		{"lists are compared item by item", "[v('0-1')] == [1]", unknown},
		{"lists are different all the same", "[v('0-1')] == [2]", "false"},
		{"in a list", "v('0-1') in [1, 2]", unknown},
		{"in a list of all it may be", "v('0-1') in [0, 1]", "true"},
		{"a list holds it", "1 in [v('0-1')]", unknown},
		{"a map holds it", "{'a': v('0-1')}.a > 0", unknown},
		{"the greatest", "math.greatest(v('0-1'), 2) == 2", "true"},
		{"made a text", "string(v('0-1')) == '1'", unknown},
		{"made a text of one digit", "string(v('0-1')).size() == 1", "true"},
		{"bound to a name", "cel.bind(n, v('0-1'), n == n)", "true"},
		{"one way is an error", "v('0-1') > 0 ? object.missing == 1 : true", unknown},
		{"every way is an error", "v('0-1') > 0 && object.missing == 1 || object.missing == 2", "error"},
		{"an error that a known value absorbs", "v('0-1') > 0 || object.missing == 1", unknown},
		{"through a variable", "variables.open > 0", unknown},
		{"through a variable, decided", "variables.open >= 0", "true"},
		{"through two variables", "variables.twice == variables.open + variables.open", "true"},
		{"through a variable that was read before", "variables.open >= 0 && variables.twice > 0", unknown},
		{"through one that reads a known one", "variables.mixed > 1", unknown},
		{"through one that reads a known one, which was read before", "variables.known > 0 && variables.mixed > 1", unknown},
		{"and is decided", "variables.known > 0 && variables.mixed > 0", "true"},
		{"as many worlds as are looked at", "v('0-1023') != -1", "true"},
		{"one more", "v('0-1024') != -1", unknown},
		{"as many of two", "verify('0-31', [1]) - verify('0-31', [2]) != 100", "true"},
		{"one more of two", "verify('0-32', [1]) - verify('0-31', [2]) != 100", unknown},
		{"so many that their number is none", "lists.range(7).map(i, verify('0-1023', [i])).all(e, e != 5000)", unknown},
		{"one so large that their number is none", "verify('0-3', [1]) != 9 && verify('0-4611686018427387903', [2]) != -1", unknown},
		{"a variable that knows", "variables.known > 0", "true"},
		{"many that all may be", "lists.range(12).all(i, v('0-1') >= 0)", "true"},
		{"a dozen different ones that all may be", "lists.range(12).map(i, verify('0-1', [i])).all(e, e >= 0)", "true"},
		{"a dozen that may not be, and one that is not", "(lists.range(12).map(i, verify('0-1', [i])) + [v('0')]).all(e, e > 0)", "false"},
		{"a dozen that may be, and one that is", "(lists.range(12).map(i, verify('0-1', [i])) + [v('1')]).exists(e, e > 0)", "true"},
		{"a dozen that may be, and none that is", "lists.range(12).map(i, verify('0-1', [i])).exists(e, e > 0)", unknown},
		{"the sum of a dozen", "lists.range(12).map(i, verify('0-1', [i])).sum() <= 12", "true"},
		{"none of a dozen is more than one", "!lists.range(12).exists(i, verify('0-1', [i]) > 1)", "true"},
		{"a dozen that go up and down are too many worlds", "lists.range(12).map(i, verify('0-1', [i])).all(e, e != 5)", unknown},
		{"up and down, the same at both ends", "v('0-2') != 1", unknown},
		{"up and down in a loop, the same at both ends", "[1, 2].map(i, verify('0-2', [i])).exists_one(e, e == 1)", unknown},
		{"the same call twice is the same count", "[1, 1].map(i, verify('0-2', [i])).exists_one(e, e == 1)", "false"},
		{"a condition that goes up and down", "v('0-2') == 1 ? false : true", unknown},
		{"the difference of two", "verify('0-2', [1]) - verify('0-2', [2]) == 0", unknown},
		{"the same less itself", "v('0-2') - v('0-2') == 0", "true"},
		{"a product that goes down and up", "(v('0-2') - 1) * (v('0-2') - 1) == 1", unknown},
		{"random in every world", "v('0-2') >= 0 && random() != ''", "true"},
		{"a map with an open count", "{'a': v('0-2')}.all(k, x, x != 1)", unknown},
		{"a list with places", "[v('0-2')].all(k, x, x != 1)", unknown},
		{"a bound name of an open count", "cel.bind(n, v('0-2'), n >= 0 && n < 3)", "true"},
		{"a bound name that goes up and down", "cel.bind(n, v('0-2'), n == 1)", unknown},
		{"a bound name hides the variables", "cel.bind(variables, {'open': v('0-2')}, variables.open == 1)", unknown},
		{"a filter's length", "['0-2'].map(i, v(i)).filter(e, e == 1).size() == 0", unknown},
		{"a huge one", "v('0-1000000') >= 0", "true"},
		{"a huge one that goes up and down", "v('0-1000000') != -1", unknown},
		{"a huge one that matters", "v('0-1000000') > 0", unknown},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := newScope(t)
			for _, variable := range [][2]string{{"known", "verify('1', [])"}, {"open", "verify('0-1', [])"}, {"twice", "variables.open * 2"}, {"mixed", "verify('0-1', []) + variables.known"}} {
				if err := s.Declare("spec.variables", variable[0], variable[1]); err != nil {
					t.Fatal(err)
				}
			}
			p := compile(t, s, strings.NewReplacer("v(i)", "verify(i, [])", "v('", "verify('", "')", "', [])").Replace(test.expression))
			in := inputs()
			in.Functions = map[string]cel.Call{"verify": counts}
			a := s.NewActivation(in)
			for range 2 { // the same again
				value, err := p.Eval(t.Context(), a)
				if got := outcome(value, err); got != test.want {
					t.Fatalf("%s is %s (%v), want %s", p.Expression(), got, err, test.want)
				}
			}
		})
	}
}

func outcome(value ref.Val, err error) string {
	if unknown, ok := errors.AsType[*cel.UnknownError](err); ok {
		if len(unknown.Gaps) == 0 || !errors.Is(err, errRegistry) {
			return "unknown without its gap"
		}
		return "unknown"
	}
	if err != nil {
		return "error"
	}
	return fmt.Sprint(value == types.True)
}

func TestGapsAreNamedOnce(t *testing.T) {
	s := newScope(t)
	in := inputs()
	in.Functions = map[string]cel.Call{"verify": counts}
	_, err := compile(t, s, "verify('0-1', [1]) > 0 || verify('0-1', [2]) > 0 || verify('0-2', []) > 0").Bool(t.Context(), s.NewActivation(in))
	unknown, ok := errors.AsType[*cel.UnknownError](err)
	if !ok || len(unknown.Gaps) != 2 {
		t.Errorf("got %v", err)
	}
}

func TestBadCounts(t *testing.T) {
	tests := []struct {
		reason string
		count  cel.Count
	}{
		{"the ends are swapped", cel.Count{Lower: 2, Upper: 1}},
		{"with a gap", cel.Count{Lower: 2, Upper: 1, Gaps: []error{errRegistry}}},
		{"an open count without a gap", cel.Count{Upper: 1}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := newScope(t)
			in := inputs()
			in.Functions = map[string]cel.Call{"verify": func(context.Context, []ref.Val) (any, error) { return test.count, nil }}
			if _, err := compile(t, s, "verify('a', []) >= 0").Bool(t.Context(), s.NewActivation(in)); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// TestHowOftenIsCounted: once where nothing is open, and once in each world that is looked at.
func TestHowOftenIsCounted(t *testing.T) {
	open := cel.Count{Upper: 2, Gaps: []error{errRegistry}}
	for _, c := range []struct {
		reason, expression string
		count              cel.Count
		want               int
	}{
		{"a known one", "verify('a', []) >= 0", cel.Count{Lower: 1, Upper: 1}, 1},
		{"an open one that goes one way", "verify('a', []) >= 0", open, 2},
		{"one that does not", "verify('a', []) != 5", open, 5},
		{"one that is seen to matter at its ends", "verify('a', []) == 0", open, 2},
		{"a variable, once in each world", "variables.n + variables.n >= 0", open, 2},
		{"one that knows", "variables.n + variables.n >= 0", cel.Count{Lower: 1, Upper: 1}, 1},
		{"ends so far apart that their difference is none", "verify('a', []) != 5", cel.Count{Lower: math.MinInt64, Upper: math.MaxInt64, Gaps: open.Gaps}, 2},
	} {
		s := newScope(t)
		if err := s.Declare("v", "n", "verify('a', [])"); err != nil {
			t.Fatal(err)
		}
		calls := 0
		in := inputs()
		in.Functions = map[string]cel.Call{"verify": func(context.Context, []ref.Val) (any, error) { calls++; return c.count, nil }}
		value, err := compile(t, s, c.expression).Eval(t.Context(), s.NewActivation(in))
		if calls != c.want {
			t.Errorf("%s: counted %d times, want %d; it is %s", c.reason, calls, c.want, outcome(value, err))
		}
	}
}

// TestUnknownErrorOfAFunction: a function that returns no count may be unknown, too.
func TestUnknownErrorOfAFunction(t *testing.T) {
	s := newScope(t)
	in := inputs()
	in.Functions["payload"] = func(context.Context, []ref.Val) (any, error) {
		return nil, &cel.UnknownError{Gaps: []error{errRegistry}}
	}
	for expression, want := range map[string]string{
		"payload('a', 'b').ok == true":          "unknown",
		"payload('a', 'b').ok == true || true":  "true",
		"payload('a', 'b').ok == true && false": "false",
		"[payload('a', 'b')] == []":             "unknown",
	} {
		value, err := compile(t, s, expression).Eval(t.Context(), s.NewActivation(in))
		if got := outcome(value, err); got != want {
			t.Errorf("%s is %s (%v), want %s", expression, got, err, want)
		}
	}
}
