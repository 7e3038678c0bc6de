package cel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

func TestReads(t *testing.T) {
	tests := []struct{ reason, expression, want string }{
		{"a field", "object.spec.hostNetwork == true", "object.spec"},
		{"a constant key", "images['containers'].size() > 0", "images.containers"},
		{"an optional field", "object.?spec.hasValue()", "object.spec"},
		{"an optional key", "images[?'containers'].hasValue()", "images.containers"},
		{"whether it is there", "has(object.spec.a)", "object.spec"},
		{"a key that is computed", "images[object.kind].size() > 0", "images object.kind"},
		{"as a whole", "size(images) > 0", "images"},
		{"the name of a macro is no variable", "images.containers.map(object, object + 'a').size() > 0", "images.containers"},
		{"nor is a bound one, but the expression it is bound to", "cel.bind(object, request.name, object) == 'a'", "request.name"},
		{"a bound name is its own only inside", "cel.bind(object, object.a, object) == object.b", "object.a object.b"},
		{"in a list, a map, a condition", "[object.a, {'b': object.c}[object.d]] == (object.e ? [] : [object.f])", "object.a object.c object.d object.e object.f"},
		{"through a variable", "variables.two == 2", "object.one object.two variables.one variables.two"},
		{"through a variable that is asked for only", "has(variables.one)", "object.one variables.one"},
		{"of itself and through a variable, once", "object.one == 1 && variables.one == 1 && object.one == 1", "object.one variables.one"},
		{"through a variable twice", "variables.one == 1 && variables.two == 1", "object.one object.two variables.one variables.two"},
		{"variables as a whole", "dyn(variables) == 1", "object.one object.three object.two variables variables.one"},
		{"a library", "resource.Get('v1', 'pods', 'a', 'b').kind == 'Pod'", "resource"},
		{"nothing", "1 == 1", ""},
		{"two names of a macro", "images.all(k, v, k == 'a' && v.size() > 0)", "images"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			var got []string
			for _, read := range compile(t, withVariables(t), test.expression).Reads() {
				got = append(got, strings.TrimSuffix(read.Variable+"."+read.Field, "."))
			}
			slices.Sort(got)
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func withVariables(t *testing.T) *cel.Scope {
	t.Helper()
	s := newScope(t)
	for _, v := range [][2]string{{"one", "object.one"}, {"two", "[object.two, variables.one]"}, {"three", "object.three"}} {
		if err := s.Declare("spec.variables", v[0], strings.Replace(v[1], "[object.two, variables.one]", "object.two + variables.one", 1)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestCalls(t *testing.T) {
	const unknown = "unknown"
	tests := []struct{ reason, expression, want string }{
		{"an attestor", "verify('i', [attestors.a]) > 0", "a"},
		{"two attestors", "verify('i', [attestors.a, attestors['b']]) > 0", "a b"},
		{"the same twice", "verify('i', [attestors.a, attestors.a]) > 0", "a"},
		{"none", "verify('i', []) > 0", ""},
		{"a sum", "verify('i', [attestors.a] + [attestors.b]) > 0", "a b"},
		{"one of two", "verify('i', object.x ? [attestors.a] : [attestors.b]) > 0", "a b"},
		{"one of two items", "verify('i', [object.x ? attestors.a : attestors.b]) > 0", "a b"},
		{"a variable", "verify('i', variables.pair) > 0", "a b"},
		{"a variable of a variable", "verify('i', variables.more) > 0", "a b c"},
		{"in a macro", "images.containers.map(i, verify(i, [attestors.a])).all(e, e > 0)", "a"},
		{"in a macro in a macro", "[1].all(x, images.containers.all(i, verify(i, [attestors.a]) > x))", "a"},
		{"inside of a variable", "variables.count > 0", "c"},
		{"inside of a variable that is read twice", "variables.count + variables.doubled > 0", "c"},
		{"all of them, as one", "verify('i', [attestors]) > 0", unknown},
		{"whichever it is", "verify('i', [attestors[object.name]]) > 0", unknown},
		{"all there are", "verify('i', attestors.map(k, attestors[k])) > 0", unknown},
		{"another variable's field", "verify('i', [object.a]) > 0", unknown},
		{"a name of a macro", "['a'].all(attestors, verify('i', [attestors]) > 0)", unknown},
		{"a name of a macro that hides it", "[{'a': 'b'}].all(attestors, verify('i', [attestors.a]) > 0)", unknown},
		{"a field of an attestor", "verify('i', [attestors.a.b]) > 0", unknown},
		{"filtered", "verify('i', [attestors.a].filter(x, true)) > 0", unknown},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := newScope(t)
			for _, v := range [][2]string{
				{"pair", "[attestors.a, attestors.b]"}, {"more", "variables.pair + [attestors.c]"},
				{"count", "verify('i', [attestors.c])"}, {"doubled", "variables.count * 2"},
			} {
				if err := s.Declare("spec.variables", v[0], v[1]); err != nil {
					t.Fatal(err)
				}
			}
			p := compile(t, s, test.expression)
			calls := p.Calls("verify")
			if len(calls) != 1 {
				t.Fatalf("%d calls", len(calls))
			}
			fields, known := calls[0].Arguments[1].Fields("attestors")
			got := strings.Join(fields, " ")
			if !known {
				got = unknown
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if other := p.Calls("payload"); len(other) != 0 {
				t.Errorf("%d calls of another function", len(other))
			}
		})
	}
}

// TestFieldsCost: each variable is followed once, however often variables read it.
func TestFieldsCost(t *testing.T) {
	for _, read := range []string{"variables.vN + variables.vN", "object.x ? variables.vN : variables.vN", "variables.vN + [attestors.b] + variables.vN"} {
		s := newScope(t)
		if err := s.Declare("spec.variables", "v0", "[attestors.a]"); err != nil {
			t.Fatal(err)
		}
		const variables = 60
		for i := 1; i < variables; i++ {
			if err := s.Declare("spec.variables", fmt.Sprint("v", i), strings.ReplaceAll(read, "vN", fmt.Sprint("v", i-1))); err != nil {
				t.Fatal(err)
			}
		}
		fields, known := compile(t, s, "verify('i', variables.v59) > 0").Calls("verify")[0].Arguments[1].Fields("attestors")
		if got := strings.Join(fields, " "); !known || got != "a" && got != "a b" {
			t.Errorf("%s: %q, %t", read, got, known)
		}
	}
}

func TestArguments(t *testing.T) {
	s := newScope(t)
	p := compile(t, s, "payload('ghcr.io/a', attestations.sbom).a == time.now() || [random('x')].exists(i, payload(i, 'b') == 1)")
	calls := p.Calls("payload")
	if len(calls) != 2 {
		t.Fatal(len(calls))
	}
	var got []string
	for _, call := range calls {
		for _, argument := range call.Arguments {
			text, ok := argument.Constant()
			fields, known := argument.Fields("attestations")
			got = append(got, fmt.Sprintf("%s %v %v %v", text, ok, fields, known))
		}
	}
	want := []string{"ghcr.io/a true [] false", " false [sbom] true", " false [] false", "b true [] false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if len(p.Calls("time.now")) != 1 || len(p.Calls("random")) != 1 {
		t.Error("a call of a library is not seen")
	}
}
