package cel_test

import (
	"errors"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestDecodedJSON reads decoded JSON as maps and lists of the language.
func TestDecodedJSON(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "d", Type: celgo.DynType}}})
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]any{
		"a": map[string]any{"b": 1.0}, "blank": map[string]any{"": "x"}, "l": []any{1.0, "x", nil, true, map[string]any{"y": "z"}}, "none": nil, "empty": map[string]any{}, "nothing": []any{}, "n": int64(7),
	}
	for expression, want := range map[string]string{
		"d.a == {'b': 1.0} && {'b': 1} == d.a":                                                   "",
		"d.a != {'b': 2.0} && d.a != {'c': 1.0}":                                                 "",
		"d.l == [dyn(1.0), dyn('x'), dyn(null), dyn(true), dyn({'y': 'z'})]":                     "",
		"d.l == d.l && d.l != d.nothing && d.a != d.l":                                           "",
		"'b' in d.a && !('c' in d.a) && !(1 in d.a)":                                             "",
		"1.0 in d.l && 1 in d.l && !('y' in d.l) && {'y': 'z'} in d.l":                           "",
		"size(d.l) == 5 && d.a.size() == 1":                                                      "",
		"d.l[0] == 1.0 && d.l[4].y == 'z' && d.l[1u] == 'x'":                                     "",
		"d['a']['b'] == 1.0 && d.?a.?b.hasValue() && !d.?a.?c.hasValue()":                        "",
		"d.l[?9].orValue('none') == 'none'":                                                      "",
		"has(d.a.b) && !has(d.a.c) && has(d.none)":                                               "",
		"(d.l + [2]).size() == 6 && ([dyn(2)] + d.l)[1] == 1.0 && (d.l + d.l)[9].y == 'z'":       "",
		"d.a.map(k, k) == ['b'] && d.l.filter(x, x == 'x') == ['x']":                             "",
		"d.a.all(k, v, k == 'b' && v == 1.0) && d.l.exists(i, v, i == 1 && v == 'x')":            "",
		"type(d.a) == map && type(d.l) == list && type(d.none) == null_type && type(d.n) == int": "",
		"!optional.ofNonZeroValue(d.empty).hasValue() && !optional.ofNonZeroValue(d.nothing).hasValue() && optional.ofNonZeroValue(d.a).hasValue()": "",
		"json.marshal(d.l) == '[1,\"x\",null,true,{\"y\":\"z\"}]'":                                                                                  "",
		"'%s' .format([d.l]) == '[1, x, null, true, {y: z}]'":                                                                                       "",
		"d.l.slice(1, 2) == ['x'] && d.l.reverse()[0].y == 'z'":                                                                                     "",
		"[d.a].exists(x, x.b == 1.0)":                                                                                                               "",
		"d.blank[''] == 'x' && d.?blank[?''].hasValue()":                                                                                            "",
		"d.l[0] == 1.0 && d.l[2] == null && d.l[0u] == 1.0":                                                                                         "",
		"!(d.l in ['gold']) && !(d.l in [1, 2]) && !(d.l in {'a': 1}) && !(d.nothing in [true])":                                                    "",
		"!(d.a in ['gold']) && !(d.a in [1]) && !(d.empty in {'a': 1})":                                                                             "",
		"d.l[1] in ['x', 'y'] && d.l[0] in [1] && d.a.b in {1: 'x'} && !(d.l[1] in ['y'])":                                                          "",
		"d.l in [d.l, d.a] && d.a in [d.l, d.a] && !(d.empty in [d.l, d.a])":                                                                        "",
		"size({d.l: 1}) == 1 && size({d.a: 1, d.l: 2}) == 2":                                                                                        "",
		"d.blank[1]": "no such",
		"d.l[5]":     "out of bounds",
		"d.l[-1]":    "out of bounds",
		"d.l['0']":   "unsupported",
		"d.a.c":      "no such key",
		"d.a[1]":     "no such",
		"d.a.b.c":    "no such",
		"d.a < d.a":  "no such overload",
		"d.l + d.a":  "no such overload",
	} {
		// As the variable itself, which the library reads, and under a name, which is one of ours.
		for _, each := range []string{expression, "cel.bind(d, d, " + expression + ")"} {
			scope, err := env.NewScope()
			if err != nil {
				t.Fatal(err)
			}
			p, err := scope.Compile("e", each)
			if err != nil {
				t.Errorf("%s: %v", each, err)
				continue
			}
			value, err := p.Eval(t.Context(), scope.NewActivation(cel.Inputs{Variables: map[string]any{"d": data}}))
			switch {
			case want == "" && (err != nil || value != types.True):
				t.Errorf("%s: %v %v", each, value, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: %v %v", each, value, err)
			}
		}
	}
}

// open is an object with members by name; others are unknown. A value of it has no hash.
type open map[string]any

func (o open) Member(name string) (any, bool) { value, known := o[name]; return value, known }

func (o open) Unknown(name string) error { return errors.New(name + " is unknown") }

func (o open) Members() (map[string]any, error) { return nil, errors.New("some are unknown") }

// TestPartialMembership: an object with unknown members is in no set of texts, and a known member of it may be.
func TestPartialMembership(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "d", Type: celgo.DynType}}})
	if err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]ref.Val{
		"d in ['a']": types.False, "d in {'a': 1}": types.False, "d.a in ['b']": types.True, "d.l in ['b']": types.False, "d.c in ['b']": nil,
	} {
		scope, err := env.NewScope()
		if err != nil {
			t.Fatal(err)
		}
		p, err := scope.Compile("e", expression)
		if err != nil {
			t.Fatal(err)
		}
		data := cel.Partial(open{"a": "b", "l": []any{"b"}})
		if value, err := p.Eval(t.Context(), scope.NewActivation(cel.Inputs{Variables: map[string]any{"d": data}})); value != want && want != nil || (err == nil) != (want != nil) {
			t.Errorf("%s: %v %v", expression, value, err)
		}
	}
}

// values answers for variables, and counts how often.
type values struct{ asked map[string]int }

func (v values) Value(name string) (any, bool) {
	v.asked[name]++
	return "of " + name, name != "c"
}

// TestMore has variables asked for once, and the given ones first.
func TestMore(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "a", Type: celgo.StringType}, {Name: "b", Type: celgo.StringType}, {Name: "c", Type: celgo.StringType}}})
	if err != nil {
		t.Fatal(err)
	}
	scope, err := env.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	p, err := scope.Compile("e", "a + a + b + a")
	if err != nil {
		t.Fatal(err)
	}
	more := values{map[string]int{}}
	text, err := p.Text(t.Context(), scope.NewActivation(cel.Inputs{Variables: map[string]any{"b": "given"}, More: more}))
	if err != nil || text != "of aof agivenof a" || more.asked["a"] != 1 || more.asked["b"] != 0 {
		t.Error(text, err, more.asked)
	}
	p, err = scope.Compile("e", "c")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := p.Text(t.Context(), scope.NewActivation(cel.Inputs{More: more})); err == nil {
		t.Error("a variable without a value:", text)
	}
}
