package cel_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

// options are what an image policy declares, in short.
func options() cel.Options {
	text, list := celgo.StringType, celgo.ListType(celgo.DynType)
	return cel.Options{
		Variables: []cel.Variable{
			{Name: "object", Type: celgo.DynType},
			{Name: "request", Type: library.RequestType()},
			{Name: "namespaceObject", Type: library.NamespaceType()},
			{Name: "images", Type: celgo.MapType(text, celgo.ListType(text))},
			{Name: "attestors", Type: celgo.MapType(text, celgo.DynType)},
			{Name: "attestations", Type: celgo.MapType(text, text)},
		},
		Functions: []cel.Function{
			{Name: "verify", Overloads: []cel.Overload{{ID: "verify_string_list", Arguments: []*celgo.Type{text, list}, Result: celgo.IntType}}},
			{Name: "payload", Overloads: []cel.Overload{{ID: "payload_string_string", Arguments: []*celgo.Type{text, text}, Result: celgo.DynType}}},
		},
		Resource: true, HTTP: true, GlobalContext: true, ImageData: true,
	}
}

func newScope(tb testing.TB) *cel.Scope {
	tb.Helper()
	env, err := cel.NewEnv(options())
	if err != nil {
		tb.Fatal(err)
	}
	return scopeOf(tb, env)
}

func scopeOf(tb testing.TB, env *cel.Env) *cel.Scope {
	tb.Helper()
	s, err := env.NewScope()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func compile(tb testing.TB, s *cel.Scope, expression string, wants ...*celgo.Type) *cel.Program {
	tb.Helper()
	p, err := s.Compile("spec.expression", expression, wants...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func inputs() cel.Inputs {
	return cel.Inputs{
		Variables: map[string]any{
			"object":    map[string]any{"metadata": map[string]any{"name": "web"}, "replicas": int64(3), "text": "abc"},
			"request":   map[string]any{"operation": "CREATE", "userInfo": map[string]any{"username": "system:serviceaccount:ns:builder"}},
			"images":    map[string]any{"containers": []any{"ghcr.io/a:1", "ghcr.io/b:1", "ghcr.io/c:1"}},
			"attestors": map[string]any{"a": "a", "b": "b"},
		},
		Functions: map[string]cel.Call{"verify": signed(1)},
		Now:       func() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) },
		Random:    strings.NewReader(strings.Repeat("\x01\x02\x03\x04", 100)),
	}
}

// signed counts n signatures on every image.
func signed(n int64) cel.Call {
	return func(context.Context, []ref.Val) (any, error) { return n, nil }
}

func TestCompile(t *testing.T) {
	tests := []struct {
		reason, expression string
		wants              []*celgo.Type
		err                string // part of the error; empty means none
	}{
		{reason: "a comparison is a bool", expression: "object.replicas > 1", wants: []*celgo.Type{celgo.BoolType}},
		{reason: "nothing is wanted", expression: "object.replicas"},
		{reason: "a string is no bool", expression: "'a'", wants: []*celgo.Type{celgo.BoolType}, err: "spec.expression: the value is of type string, and has to be bool"},
		{reason: "what may be anything is no bool", expression: "object.ready", wants: []*celgo.Type{celgo.BoolType}, err: "the value is of type dyn"},
		{reason: "the place of a syntax error is shown", expression: "object.a ==", err: "...........^"},
		{reason: "a name that is not declared", expression: "objekt.a", err: "undeclared reference to 'objekt'"},
		{reason: "a field that the request has not", expression: "request.user", err: "undefined field 'user'"},
		{reason: "a variable that is not declared", expression: "variables.a", err: "undefined field 'a'"},
		{reason: "an argument of the wrong type", expression: "verify(1, [])", err: "no matching overload for 'verify'"},
		{reason: "an empty expression", expression: "", err: "is empty"},
		{reason: "text that is not UTF-8", expression: "'\xff'", err: "not UTF-8"},
		{reason: "a wanted one of two", expression: "'a'", wants: []*celgo.Type{celgo.BoolType, celgo.StringType}},
		{reason: "a plain value of a known type has no default", expression: "'a'.orValue('b') == 'a'", err: "no matching overload"},
		{reason: "neither of two", expression: "1", wants: []*celgo.Type{celgo.BoolType, celgo.StringType}, err: "the value is of type int, and has to be bool or string"},
		{reason: "as long as may be", expression: "'" + strings.Repeat("a", 64<<10-2) + "'"},
		{reason: "a long expression", expression: "'" + strings.Repeat("a", 64<<10) + "'", err: "exceeds the bound of 65536"},
		{reason: "deep brackets", expression: strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000), err: "recursion"},
		{reason: "as many macros that copy as may be", expression: "optional.of(1)" + strings.Repeat(".optMap(x, x)", 5) + ".optFlatMap(x, optional.of(x))"},
		{reason: "one more", expression: "optional.of(1)" + strings.Repeat(".optMap(x, x)", 6) + ".optFlatMap(x, optional.of(x))", err: "more than 6 times"},
		{reason: "many macros that copy", expression: "optional.of(1)" + strings.Repeat(".optMap(x, x)", 60), err: "more than 6 times"},
		{reason: "many macros in one another", expression: strings.Repeat("[1].map(x, ", 40) + "verify('a', [])" + strings.Repeat(")", 40)},
		{reason: "as many parts as may be", expression: "[" + strings.Repeat("1,", 19_998) + "1]"},
		{reason: "one more", expression: "[" + strings.Repeat("1,", 19_999) + "1]", err: "more than 20000 parts"},
		{reason: "as many maps with computed keys as may be", expression: "[" + strings.Repeat("{object.text: 1}, ", 8) + "{}] == [{'a': 1}]"},
		{reason: "one more", expression: "[" + strings.Repeat("{object.text: 1}, ", 8) + "{}] == [{'a': 1, object.text: 1}]", err: "more than 8 maps with computed keys"},
		{reason: "many parts", expression: "[" + strings.Repeat("1,", 30_000) + "]", err: "more than 20000 parts"},
		{reason: "a constant duration that is none", expression: "duration('1 fortnight')", err: "invalid duration"},
		{reason: "a constant expression that is no regular one", expression: "'a'.matches('(')", err: "invalid matches argument"},
		{reason: "a constant expression that is no regular one, to find", expression: "'a'.find('(')", err: "find: error parsing regexp"},
		{reason: "an expression as large as may be", expression: "'a'.matches('" + strings.Repeat("a{1000}", 3) + "')"},
		{reason: "a larger one", expression: "'a'.matches('" + strings.Repeat("a{1000}", 4) + "')", err: "invalid matches argument: the bound of 10000 for the instructions of a regular expression"},
		{reason: "a larger one as a function", expression: "matches('a', '" + strings.Repeat("a{1000}", 4) + "')", err: "invalid matches argument: the bound"},
		{reason: "a text that is no pattern", expression: "matches('(', 'a')"},
		{reason: "a larger one to find", expression: "'a'.find('" + strings.Repeat("a{1000}", 4) + "') == ''", err: "invalid find argument: the bound"},
		{reason: "digits without end", expression: "'%.1000000000f'.format([1.0])", err: "exceeds maximum allowed precision"},
		{reason: "names of this package cannot be written", expression: "@activation", err: "spec.expression"},
		{reason: "a certificate", expression: "x509.decode('a').IsCA"},
		{reason: "a certificate that is no text", expression: "x509.decode(1)", err: "no matching overload"},
		{reason: "another function of x509", expression: "x509.encode('a')", err: "undeclared reference"},
	}
	env, err := cel.NewEnv(options())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			_, err := scopeOf(t, env).Compile("spec.expression", test.expression, test.wants...)
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if _, ok := errors.AsType[*cel.CompileError](err); err != nil && !ok {
				t.Errorf("%T is no CompileError", err)
			}
		})
	}
}

func TestEval(t *testing.T) {
	tests := []struct {
		reason, expression string
		want               ref.Val
		err                string
	}{
		{reason: "an object is read in place", expression: "object.metadata.name", want: types.String("web")},
		{reason: "a field that is missing is an error", expression: "object.missing == 1", err: "spec.expression: no such key: missing"},
		{reason: "an error is not false", expression: "!(object.missing == 1)", err: "no such key"},
		{reason: "an error on one side is absorbed by what decides", expression: "object.missing == 1 || true", want: types.True},
		{reason: "and is not when nothing decides", expression: "object.missing == 1 || false", err: "no such key"},
		{reason: "a variable without a value", expression: "namespaceObject.metadata.name == 'a'", err: "no such attribute"},
		{reason: "the typed request", expression: "request.operation == 'CREATE'", want: types.True},
		{reason: "a declared function", expression: "images.containers.map(i, verify(i, [attestors.a])).all(e, e > 0)", want: types.True},
		{reason: "a function that is not implemented", expression: "payload('a', 'b') == 1", err: "indeterminate: payload is not available here"},
		{reason: "an argument of a wrong type at run time", expression: "verify(object.replicas, []) > 0", err: "no such overload"},
		{reason: "its twin of the right type", expression: "verify(object.text, []) > 0", want: types.True},
		{reason: "an error of an argument", expression: "verify(object.missing, []) > 0", err: "no such key"},
		{reason: "time stands still", expression: "time.now() == timestamp('2026-03-04T05:06:07Z') && time.now() == time.now()", want: types.True},
		{reason: "random by default", expression: "random().matches('^[0-9a-z]{8}$')", want: types.True},
		{reason: "random by a pattern, in its long name", expression: "random.random('x[0-9]{3}').matches('^x[0-9]{3}$')", want: types.True},
		{reason: "a library of Kubernetes", expression: "quantity('1Gi').isGreaterThan(quantity('1Mi')) && isURL('https://a.b') && ip('1.2.3.4').family() == 4", want: types.True},
		{reason: "sets and optional values", expression: "sets.contains(['a'], ['a']) && object.?missing.orValue(3) == 3", want: types.True},
		{reason: "a default for a plain value", expression: "object.text.orValue('b') == object.text && object['te' + 'xt'].orValue('b') == object.text", want: types.True},
		{reason: "a default for a computed plain value", expression: "dyn([1, 2].filter(x, x > 1)).orValue([]) == [2] && dyn(2).orValue(3) == 2", want: types.True},
		{reason: "a default for a plain element", expression: "[dyn(object.text), dyn(object.?missing)].map(x, x.orValue('b')) == [dyn(object.text), dyn('b')]", want: types.True},
		{reason: "a default is not evaluated for a plain value", expression: "object.text.orValue(object.missing) == object.text", want: types.True},
		{reason: "the values of a list of optionals", expression: "[optional.of(dyn('a')), object.?missing].unwrapOpt() == ['a']", want: types.True},
		{reason: "other values", expression: "[optional.of(dyn('a')), object.?missing].unwrapOpt() == ['a', 'b']", want: types.False},
		{reason: "the values of such a list as a function", expression: "optional.unwrap([object.?text, object.?missing]).size() == 1", want: types.True},
		{reason: "the values of a list of plain values", expression: "dyn(['a']).unwrapOpt() == ['a']", err: "no such overload"},
		{reason: "the first and the last of a list", expression: "['a', 'b'].first().value() == 'a' && ['a', 'b'].last().orValue('c') == 'b'", want: types.True},
		{reason: "the first of an empty list", expression: "dyn([]).first().hasValue()", want: types.False},
		{reason: "the value of an optional", expression: "object.?text.value() == object.text && object.?text.hasValue()", want: types.True},
		{reason: "no value of an optional", expression: "object.?missing.hasValue()", want: types.False},
		{reason: "an optional or another", expression: "object.?missing.or(object.?text).value() == object.text", want: types.True},
		{reason: "a plain value as an optional", expression: "object.text.hasValue() && object.text.or(optional.of('b')).value() == object.text", want: types.True},
		{reason: "an element or none", expression: "['a'][?0].value() == 'a' && !['a'][?1].hasValue() && {'a': 1}[?'a'].value() == 1", want: types.True},
		{reason: "an element of an optional", expression: "optional.of(['a'])[0].value() == 'a' && optional.of({'a': 1})[?'b'].hasValue()", want: types.False},
		{reason: "a default is none for a missing field", expression: "object.missing.orValue('b') == 'b'", err: "no such key"},
		{reason: "a plain value is there", expression: "object.text.hasValue() && object.text.value() == object.text && object.text.or(optional.none()).hasValue()", want: types.True},
		{reason: "an optional without a value is not", expression: "object.?missing.hasValue() || dyn(object.?missing).hasValue()", want: types.False},
		{reason: "comprehensions of two variables", expression: "['a'].all(i, v, i == 0 && v == 'a')", want: types.True},
		{reason: "a library of Kyverno", expression: "parseServiceAccount(request.userInfo.username).Name", want: types.String("builder")},
		{reason: "another library of Kyverno", expression: "yaml.parse('a: b').a", want: types.String("b")},
		{reason: "a variable with a computed name", expression: "dyn(variables)['o' + 'ne']", want: types.Int(1)},
		{reason: "one that is not declared", expression: "dyn(variables)['no' + 'ne']", err: "there is no variable none"},
		{reason: "a name that is none", expression: "dyn(variables)[1]", err: "no such overload"},
		{reason: "whether there is one of a computed name", expression: "dyn(variables)[?'o' + 'ne'].hasValue()", want: types.True},
		{reason: "all variables are themselves", expression: "dyn(variables) == dyn(variables) && dyn(variables) != dyn(1)", want: types.True},
		{reason: "a type that is read and not made", expression: "kubernetes.Namespace{}", err: "cannot be made by an expression"},
		{reason: "a typed variable that is read", expression: "dyn(request).operation", want: types.String("CREATE")},
		{reason: "libraries are equal to themselves alone", expression: "http == http && http == http.Client('') && http != http.Client('PEM') && dyn(http) != dyn(resource) && dyn(http) != 'http'", want: types.True},
		{reason: "and of their types", expression: "type(http) == type(http.Client('PEM')) && type(dyn(http)) != type(dyn(resource))", want: types.True},
		{reason: "a value that is no library has none of its functions", expression: "dyn('a').GetMetadata('a') == 1", err: "no such overload"},
		{reason: "equal lists, priced", expression: "object.metadata == {'name': 'web'} && [1, 2] != [1, 3]", want: types.True},
		{reason: "different objects", expression: "object.metadata == {'name': 'web', 'a': 'b'}", want: types.False},
		{reason: "a pattern that is made at run time", expression: "object.text.matches('a' + '.c')", want: types.True},
		{reason: "a constant pattern over a number", expression: "dyn(object.replicas).matches('a')", err: "no such overload"},
		{reason: "texts and lists grow", expression: "object.text + 'd' == 'abcd' && [1] + [2] == [1, 2] && b'a' + b'b' == b'ab'", want: types.True},
		{reason: "what cannot be added", expression: "dyn(object.text) + 1 == 1", err: "no such overload"},
		{reason: "digits without end, made at run time", expression: "('%' + '.1000000000f').format([1.0]) == ''", err: "precision"},
		{reason: "replacing and joining", expression: "'aXa'.replace('X', '-').replace('', '.', 1) + ['a', 'b'].join(', ')", want: types.String(".a-aa, b")},
	}
	env, err := cel.NewEnv(options())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := scopeOf(t, env)
			if err := s.Declare("spec.variables", "one", "1"); err != nil {
				t.Fatal(err)
			}
			got, err := compile(t, s, test.expression).Eval(t.Context(), s.NewActivation(inputs()))
			if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if err == nil && types.Equal(got, test.want) != types.True {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if _, ok := errors.AsType[*cel.EvalError](err); err != nil && !ok {
				t.Errorf("%T is no EvalError", err)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	text := celgo.StringType
	tests := []struct {
		reason  string
		options cel.Options
	}{
		{"a variable without a type", cel.Options{Variables: []cel.Variable{{Name: "a"}}}},
		{"a variable without a name", cel.Options{Variables: []cel.Variable{{Type: text}}}},
		{"a function without a name", cel.Options{Functions: []cel.Function{{Overloads: []cel.Overload{{ID: "x", Result: text}}}}}},
		{"two functions of one name", cel.Options{Functions: []cel.Function{
			{Name: "f", Overloads: []cel.Overload{{ID: "x", Result: text}}}, {Name: "f", Overloads: []cel.Overload{{ID: "y", Arguments: []*celgo.Type{text}, Result: text}}},
		}}},
		{"the same name twice", cel.Options{Variables: []cel.Variable{{Name: "a", Type: text}, {Name: "a", Type: text}}}},
		{"the name that is taken", cel.Options{Variables: []cel.Variable{{Name: "variables", Type: text}}}},
		{"the name of a library", cel.Options{HTTP: true, Variables: []cel.Variable{{Name: "http", Type: text}}}},
		{"a function without overloads", cel.Options{Functions: []cel.Function{{Name: "f"}}}},
		{"a function that is there already", cel.Options{Functions: []cel.Function{{Name: "sha256", Overloads: []cel.Overload{{ID: "x", Arguments: []*celgo.Type{text}, Result: text}}}}}},
		{"a function that each activation has", cel.Options{Functions: []cel.Function{{Name: "time.now", Overloads: []cel.Overload{{ID: "x", Result: text}}}}}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			if _, err := cel.NewEnv(test.options); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// TestOptionsAreTaken: the valid neighbours of refused options are accepted.
func TestOptionsAreTaken(t *testing.T) {
	text := celgo.StringType
	if _, err := cel.NewEnv(cel.Options{
		Variables: []cel.Variable{{Name: "a", Type: text}, {Name: "http", Type: text}},
		Functions: []cel.Function{
			{Name: "f", Overloads: []cel.Overload{{ID: "x", Result: text}}}, {Name: "g", Overloads: []cel.Overload{{ID: "y", Arguments: []*celgo.Type{text}, Result: text}}},
		},
	}); err != nil {
		t.Error(err)
	}
}

// TestVariablesOfTheirOwn: a dialect's variable is no library that has its name.
func TestVariablesOfTheirOwn(t *testing.T) {
	for _, name := range []string{"resource", "http", "globalContext", "image"} {
		env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: name, Type: celgo.DynType}}})
		if err != nil {
			t.Fatal(err)
		}
		s := scopeOf(t, env)
		p := compile(t, s, name+" == 'a'")
		if held, err := p.Bool(t.Context(), s.NewActivation(cel.Inputs{Variables: map[string]any{name: "a"}})); !held || err != nil {
			t.Errorf("%s with a value: %t %v", name, held, err)
		}
		if held, err := p.Bool(t.Context(), s.NewActivation(cel.Inputs{})); err == nil {
			t.Errorf("%s without a value: %t", name, held)
		}
	}
}

// TestOverloads: a function takes the arguments of one of its forms, and no others.
func TestOverloads(t *testing.T) {
	text, number := celgo.StringType, celgo.IntType
	env, err := cel.NewEnv(cel.Options{
		Variables: []cel.Variable{{Name: "d", Type: celgo.DynType}},
		Functions: []cel.Function{{Name: "f", Overloads: []cel.Overload{
			{ID: "f_text", Arguments: []*celgo.Type{text}, Result: celgo.BoolType}, {ID: "f_text_int", Arguments: []*celgo.Type{text, number}, Result: celgo.BoolType},
			{ID: "f_int_dyn", Arguments: []*celgo.Type{number, celgo.DynType}, Result: celgo.BoolType},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := cel.Inputs{
		Variables: map[string]any{"d": map[string]any{"text": "a", "int": int64(1)}},
		Functions: map[string]cel.Call{"f": func(context.Context, []ref.Val) (any, error) { return true, nil }},
	}
	for expression, want := range map[string]bool{
		"f(d.text)": true, "f(d.int)": false, "f(d.text, d.int)": true, "f(d.text, d.text)": false, "f(d.int, d.int)": true, "f(d.int, d.text)": true,
	} {
		s := scopeOf(t, env)
		held, err := compile(t, s, expression).Bool(t.Context(), s.NewActivation(in))
		if held != want || (err == nil) != want || err != nil && !strings.Contains(err.Error(), "no such overload") {
			t.Errorf("%s: %t %v", expression, held, err)
		}
	}
}

// TestNoClockAndRandom: what an evaluation is not given could not be verified.
func TestNoClockAndRandom(t *testing.T) {
	s := newScope(t)
	for _, expression := range []string{"time.now() == time.now()", "random() != ''", "random('a') == 'a'"} {
		p, in := compile(t, s, expression), inputs()
		if held, err := p.Bool(t.Context(), s.NewActivation(in)); !held || err != nil {
			t.Errorf("%s: %t %v", expression, held, err)
		}
		in.Now, in.Random = nil, nil
		_, err := p.Bool(t.Context(), s.NewActivation(in))
		if _, unknown := errors.AsType[*cel.UnknownError](err); !unknown {
			t.Errorf("%s, given nothing: %v", expression, err)
		}
	}
}

func TestForeignActivation(t *testing.T) {
	one, other := newScope(t), newScope(t)
	if _, err := compile(t, one, "true").Eval(t.Context(), other.NewActivation(cel.Inputs{})); err == nil {
		t.Error("an activation of another document was taken")
	}
}

func TestBoolAndText(t *testing.T) {
	s := newScope(t)
	a := s.NewActivation(inputs())
	if held, err := compile(t, s, "true").Bool(t.Context(), a); !held || err != nil {
		t.Error(held, err)
	}
	if text, err := compile(t, s, "'a'").Text(t.Context(), a); text != "a" || err != nil {
		t.Error(text, err)
	}
	if held, err := compile(t, s, "object.text").Bool(t.Context(), a); err == nil || held {
		t.Error("a text was a bool")
	}
	if text, err := compile(t, s, "1").Text(t.Context(), a); err == nil || text != "" {
		t.Error("a number was a text")
	}
}

func TestTexts(t *testing.T) {
	s := newScope(t)
	a := s.NewActivation(inputs())
	value, err := compile(t, s, "images.containers").Eval(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if texts, err := cel.Texts(value); err != nil || len(texts) != 3 || texts[0] != "ghcr.io/a:1" {
		t.Error(texts, err)
	}
	for _, expression := range []string{"[1]", "'a'"} {
		value, err := compile(t, s, expression).Eval(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if texts, err := cel.Texts(value); err == nil {
			t.Errorf("%s gave %v", expression, texts)
		}
	}
}
