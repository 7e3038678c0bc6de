package cost_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	k8s "k8s.io/apiserver/pkg/cel/library"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/cost"
)

const meterName = "@meter"

// long999 is a text that weighs 999.
var long999 = strings.Repeat("x", 999*16)

func newEnv(t testing.TB) *celgo.Env {
	t.Helper()
	env, err := celgo.NewEnv(
		celgo.Variable("x", celgo.DynType), celgo.Variable("long", celgo.StringType), celgo.Variable("list", celgo.ListType(celgo.DynType)),
		celgo.Variable("texts", celgo.DynType), celgo.Variable("moreTexts", celgo.DynType), celgo.Variable("members", celgo.DynType), celgo.Variable("moreMembers", celgo.DynType),
		celgo.Variable("named", celgo.DynType), celgo.Variable("moreNamed", celgo.DynType),
		celgo.Variable("half", celgo.StringType), celgo.Variable("million", celgo.ListType(celgo.DynType)), celgo.Variable("more", celgo.ListType(celgo.DynType)),
		celgo.OptionalTypes(), celgo.CrossTypeNumericComparisons(true), ext.Strings(), ext.Lists(), ext.Sets(), ext.Math(), ext.Regex(), ext.Encoders(), ext.Bindings(),
		ext.TwoVarComprehensions(), k8s.Lists(), k8s.Regex(), k8s.URLs(), k8s.Quantity(), k8s.IP(), k8s.CIDR(), k8s.SemverLib(), k8s.Format(),
		celgo.Function("fails", celgo.Overload("fails_dyn", []*celgo.Type{celgo.DynType}, celgo.BoolType, celgo.OverloadIsNonStrict(), celgo.UnaryBinding(func(v ref.Val) ref.Val { return types.Bool(types.IsError(v)) }))),
		celgo.Function("unbound", celgo.Overload("unbound_dyn", []*celgo.Type{celgo.DynType}, celgo.BoolType)),
	)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// meter adds up, and stops at a bound.
type meter struct{ spent, most uint64 }

var errSpent = errors.New("all is spent")

func (m *meter) Charge(cost uint64) error {
	m.spent += cost
	if m.spent > m.most {
		return errSpent
	}
	return nil
}

// program makes a program with priced calls.
func program(t testing.TB, env *celgo.Env, expression string) (celgo.Program, error) {
	t.Helper()
	list, err := cost.New(env, meterName)
	if err != nil {
		t.Fatal(err)
	}
	return plain(t, env, expression, celgo.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if call, ok := i.(interpreter.InterpretableCall); ok {
			return list.Call(call)
		}
		return i, nil
	}))
}

// plain makes a program with calls without a price.
func plain(t testing.TB, env *celgo.Env, expression string, options ...celgo.ProgramOption) (celgo.Program, error) {
	t.Helper()
	ast, issues := env.Compile(expression)
	if err := issues.Err(); err != nil {
		t.Errorf("%.200s: %v", expression, err)
		return nil, err
	}
	return env.Program(ast, append(options, celgo.EvalOptions(celgo.OptOptimize))...)
}

func evaluate(t testing.TB, env *celgo.Env, expression string, m *meter) (ref.Val, error) {
	t.Helper()
	p, err := plain(t, env, expression)
	if m != nil {
		p, err = program(t, env, expression)
	}
	if err != nil {
		t.Fatal(err)
	}
	many := make([]any, 1000)
	for i := range many {
		many[i] = map[string]any{"name": int64(i)}
	}
	value, _, err := p.Eval(map[string]any{
		"x":    map[string]any{"text": "abc", "n": int64(3), "d": 1.5, "b": []byte("xyz"), "list": []any{"a", "b"}, "nil": nil, "deep": map[string]any{"a": []any{int64(1)}}},
		"long": strings.Repeat("x", 32_000), "list": many, meterName: m,
		"texts": func() any { return texts(1000) }, "moreTexts": func() any { return texts(1001) },
		"members": func() any { return members(1000) }, "moreMembers": func() any { return members(1001) },
		"named": func() any { return named(1001) }, "moreNamed": func() any { return named(1002) },
		"half": strings.Repeat("x", 2<<20), "million": func() any { return make([]any, 1_000_000) }, "more": func() any { return make([]any, 1_000_001) },
	})
	return value, err
}

// texts weigh 1000 each, and are no decoded JSON.
func texts(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = long999
	}
	return list
}

// members weigh 1000 each, and are no decoded JSON.
func members(n int) map[int]string {
	object := make(map[int]string, n)
	for i := range n {
		object[i] = long999
	}
	return object
}

// named weigh 999 each.
func named(n int) map[string]any {
	object := make(map[string]any, n)
	for i := range n {
		object[strconv.Itoa(i)] = long999[16:]
	}
	return object
}

// TestPriceChangesNoResult compares each expression with its result without prices.
func TestPriceChangesNoResult(t *testing.T) {
	env := newEnv(t)
	for _, expression := range []string{
		"1 + 2 * 3 - 4 / 2 % 3", "1.5 + 2.5", "-x.n", "!true", "1 < 2 && 'a' < 'b' && b'a' <= b'b' && x.text > 'a' && 1 <= 1.5", "dyn(1) < dyn('a')",
		"'a' + 'b' + x.text", "b'a' + x.b", "[1] + [2]", "x.text + 1", "fails(x.missing)", "fails(x.n)", "unbound(x)", "x.n + x.n", "x.list + ['c']", "x.missing + 1", "1 + x.missing", "x.nil + 1", "x.list + 1", "x.list + x.n", "x.b + x.n", "x.text + x.n", "x.b + 1",
		"timestamp('2026-01-01T10:00:00Z') + duration('1h')", "duration('1h') + duration('1m')", "timestamp('2026-01-01T10:00:00Z') - timestamp('2026-01-01T09:00:00Z')",
		"timestamp('2026-01-01T10:00:00Z').getHours()", "timestamp('2026-01-01T10:00:00Z').getHours('+02:00')", "duration('90m').getMinutes()", "dyn('a').getHours()",
		"x == x", "x != x", "x.deep == {'a': [1]}", "x.nil == null", "dyn(1) == 1.0", "x.text == 1", "x.missing == 1", "1 == x.missing", "x.list == ['a', 'b']",
		"'a' in x.list", "'c' in x.list", "'text' in x", "x.n in [1, 2, 3]", "x.text in ['abc']", "1 in x.n", "x.missing in [1]",
		"x.text.matches('^a.c$')", "x.text.matches('a' + '.c')", "x.n.matches('a')", "matches('abc', 'b')", "x.text.matches(x.text)", "'a'.matches('(' + x.text)", "x.text.matches(x.n)", "x.text.matches(dyn(1))", "x.text.matches('(a{' + x.text)",
		"regex.replace(x.text, '(b)', '<' + r'\\1' + '>')", "regex.replace(x.text, 'b', 'x', 1)", "regex.replace(x.text, '(', '')", "regex.extract(x.text, 'a(.)')", "regex.extractAll(x.text, '.')", "regex.replace(x.n, 'a', '')",
		"regex.replace(x.text, '(a)|(z)', r'[\\1\\2\\\\]')", "regex.replace(x.text, '(a)(b)', r'\\2\\1')", "regex.replace(x.text, '.', '-', 2)", "regex.replace(x.text, '.', '-', 0)", "regex.replace(x.text, '.', '-', -3)", "regex.replace(x.text, '', '-')",
		"regex.replace(x.text, '(b)', r'\\2')", "regex.replace(x.text, '(b)', r'\\b')", "regex.replace(x.text, 'b', '\\\\')", "regex.replace(x.text, 'z', '\\\\')", "regex.replace(x.text, 'b', x.n)", "regex.replace(x.text, 'b', 'c', x.text)", "regex.replace(x.text, x.text, '-')",
		"regex.extract(x.text, 'z')", "regex.extract(x.text, 'b')", "regex.extract(x.text, 'a(z?)')", "regex.extract(x.text, '(a)(b)')", "regex.extract(x.n, 'a')", "regex.extract(x.text, '(')", "regex.extract(x.text, x.text)",
		"regex.extractAll(x.text, 'z')", "regex.extractAll(x.text, '([ab])')", "regex.extractAll(x.text, '(z?)')", "regex.extractAll(x.text, '(a)(b)')", "regex.extractAll(x.n, 'a')", "regex.extractAll(x.text, '(')", "regex.extractAll(x.text, x.text)",
		"x.n.find('b')", "x.n.findAll('b')", "x.text.findAll('.', x.text)", "x.text.findAll('z')", "x.text.findAll('.', 0)", "x.text.find(x.n)",
		"['a.c', 'a.c', '(', 'z', 'a.c', 'a{1,2}', 'a{1,2}'].filter(p, p == '(' || x.text.matches(p))", "['a', '('].map(p, x.text.matches(p))", "[dyn('a'), 1].map(p, x.text.matches(p))", "[x.text, x.n].map(t, t.matches('a' + x.text))",
		"x.text.find('b')", "x.text.findAll('.', 2)", "x.text.find('(' + x.text)", "x.text.findAll('b')", "x.text.contains('b') && x.text.startsWith('a') && x.text.endsWith('c')", "x.n.contains('b')",
		"x.text.replace('b', '-')", "x.text.replace('', '-')", "x.text.replace('b', '-', 1)", "x.n.replace('a', 'b')", "x.list.join()", "x.list.join('-')", "x.n.join()", "x.text.join('-')", "dyn([1, 2]).join()", "x.text.split('')", "'a,b'.split(',', 1)",
		"'%s %d %.2f'.format([x.text, x.n, x.d])", "x.text.upperAscii().lowerAscii().reverse().trim().charAt(1)", "x.text.substring(1, 2)", "x.text.substring(7)", "x.text.indexOf('c')", "strings.quote(x.text)",
		"lists.range(5)", "lists.range(-1)", "[3, 1, 2].sort()", "[3, 1, 2].sortBy(e, -e)", "[1, 1, 2].distinct()", "[[1], [2]].flatten()", "[1, 2, 3].slice(1, 2)", "[1, 2].sum()", "x.list.isSorted()", "x.list.indexOf('b')",
		"sets.contains([1, 2], [1])", "sets.equivalent([1], [1, 1])", "sets.intersects([1], [2])", "math.greatest(1, 2)", "math.least([1.5, 2.0])", "math.abs(-1)",
		"base64.encode(b'abc')", "string(base64.decode('YWJj'))", "base64.decode('!')", "string(1) + string(1.5) + string(true) + string(b'a')", "int('1') + int(1.5)", "int(x.text)", "double('1.5')", "bytes('abc')", "bool('true')", "uint(1)", "string(x.n)", "bytes(x.text)",
		"size(x) + size(x.text) + size(x.list)", "size(x.n)", "type(x.n) == int", "dyn(x.n) + 1", "x.list[0] + x.list[1]", "x.list[7]", "x[?'missing'].orValue(1)", "x.?text.hasValue()", "optional.of(1).or(optional.none()).value()", "optional.none().value()",
		"x.list.map(i, i + '!')", "x.list.filter(i, i == 'a')", "x.list.all(i, i < 'c')", "x.list.exists(i, i.contains('a'))", "x.list.exists_one(i, i == 'a')", "x.list.all(i, v, i < 2 && v != '')", "x.list.transformMap(i, v, v + 'x')",
		"cel.bind(a, x.text, a + a)", "x.n > 2 ? 'a' + 'b' : 'c' + x.missing", "x.missing == 1 || x.text + 'd' == 'abcd'", "x.missing == 1 && x.text == 'z'",
		"quantity('1Gi').isGreaterThan(quantity('1Mi'))", "quantity(x.text)", "isQuantity('1')", "url('https://a.b/c').getHost()", "isURL(x.text)", "ip('1.2.3.4').isLoopback()", "cidr('10.0.0.0/8').containsIP('10.1.1.1')", "semver('1.2.3').isLessThan(semver('2.0.0'))",
		"format.dns1123Label().validate('A').value().size() > 0", "format.named('dns1123Label').hasValue()",
	} {
		want, wantErr := evaluate(t, env, expression, nil)
		got, err := evaluate(t, env, expression, &meter{most: cost.MaxCost})
		if (err == nil) != (wantErr == nil) || (err != nil && !alike(err, wantErr)) {
			t.Errorf("%s: error %v, without a price %v", expression, err, wantErr)
			continue
		}
		if err == nil && types.Equal(got, want) != types.True {
			t.Errorf("%s: %v, without a price %v", expression, got, want)
		}
	}
}

// alike: the library words a wrong type in several ways.
func alike(a, b error) bool {
	const overload = "no such overload"
	return a.Error() == b.Error() || strings.Contains(a.Error(), overload) && strings.Contains(b.Error(), overload)
}

func TestPrices(t *testing.T) {
	tests := []struct {
		reason, expression string
		least, most        uint64
	}{
		{"arithmetic and comparisons of numbers are free", "x.n + 1 > 2 && x.d < 3.0", 0, 0},
		{"short texts are free", "x.text + 'd' == 'abcd'", 0, 0},
		{"a long text is paid for by its length", "long == long", 4000, 4000},
		{"a copy of it, too", "(long + long).size() > 0", 4000, 8000},
		{"a field of a large list is free", "list[999].name == 999", 0, 0},
		{"its size is free", "size(list) > 0", 0, 0},
		{"comparing it costs its contents", "list == list", 4000, 5000},
		{"looking for something in it, too", "{'name': 7} in list", 2000, 2500},
		{"a set of constants is free", "x.text in ['abc', 'd']", 0, 0},
		{"a pattern costs the product", "long.matches('(a|b)*x+y?z{0,9}')", 8000, 20000},
		{"and when it is made at run time", "long.matches('(a|b)*' + 'x+y?z{0,9}')", 8000, 20000},
		{"a map is built for nothing but its steps", "list.map(i, i.name).size() == 1000", 0, 0},
		{"what a function made is paid for", "'%s'.format([long]).size() > 0", 4000, 6000},
		{"distinct compares each with each", "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].distinct().size() == 10", 100, 200},
		{"the cheapest that is paid for", "'" + strings.Repeat("x", 256) + "'.contains(x.text) || true", 16, 16},
		{"the dearest that is free", "'" + strings.Repeat("x", 255) + "'.contains(x.text) || true", 0, 0},
		{"texts are compared by their length", "long < long || true", 4000, 4000},
		{"bytes, too", "bytes(long) < bytes(long) || true", 12000, 12000},
		{"texts that are known for texts only now, too", "dyn(long) < dyn(long) || true", 4000, 4000},
		{"the order of numbers is free", "x.n < 4 && x.d >= 1.5 && dyn(x.n) <= dyn(x.d) || true", 0, 0},
		{"a conversion is a copy", "bytes(long).size() > 0", 4000, 4000},
		{"a conversion of a constant is made when the program is", "bytes('" + strings.Repeat("x", 256) + "').size() > 0", 0, 0},
		{"a large set of constants is free", "x.n in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]", 0, 0},
		{"a list that is no set is looked through", "x.n in [x.n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]", 20, 20},
		{"a pattern that repeats parts of itself", "x.text.matches('(a?){1000}') || true", 500, 2000},
		{"and when it is made at run time", "x.text.matches('(a?)' + '{1000}') || true", 500, 2000},
		{"a map costs its entries", "{1: x.n, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8, 9: 9, 10: 10, 11: 11, 12: 12, 13: 13, 14: 14, 15: 15, 16: 16} == {1: 2}", 17, 17},
		{"that two texts differ is found by their length, too", "long != long || true", 4000, 4000},
		{"and their contents", "{1: dyn(long)} == {1: dyn(long)}", 4000, 4002},
		{"a pattern without braces costs its length", "long.matches('abc|bcd') || true", 6002, 6002},
		{"a pattern that is replaced costs the product and what may be made", "regex.replace(long, 'abc|bcd', 'x') == ''", 16002, 16002},
		{"constants are computed when the program is made", "int('1') + size('a' + 'b')", 0, 0},
	}
	env := newEnv(t)
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			m := &meter{most: cost.MaxCost}
			if _, err := evaluate(t, env, test.expression, m); err != nil {
				t.Fatal(err)
			}
			if m.spent < test.least || m.spent > test.most {
				t.Errorf("%s costs %d, want %d to %d", test.expression, m.spent, test.least, test.most)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	thousand := "lists.range(1000)"
	tests := []struct{ reason, refused, twin string }{
		{"a text that grows too large", thousand + ".map(i, long).join() == ''", "[long, long].join() != ''"},
		{"a text that has grown to the bound, and a letter", "[half, half, 'x'].join() != ''", "[half, half].join() != ''"},
		{"joined by a large text", thousand + ".map(i, 'a').join(long) == ''", "['a', 'a'].join(long) != ''"},
		{"replaced by a large text", "long.replace('x', long) == ''", "long.replace('y', long) != ''"},
		{"bytes that grow too large", "cel.bind(a, bytes(" + thousand + ".map(i, long.substring(0, 4000)).join()), a + a) == b''", "bytes(long) + bytes(long) != b''"},
		{"a list that grows too large", "lists.range(60000) + lists.range(60000) == []", "lists.range(10) + lists.range(10) != []"},
		{"a range that is too large", "lists.range(100001) == []", "lists.range(100000) != []"},
		{"a pattern that is too large", "'a'.matches(long)", "'a'.matches('a' + '')"},
		{"a text of a byte more than is allowed", "half + half + 'x' != ''", "half + half != ''"},
		{"a constant that is replaced by a large text", "'" + strings.Repeat("x", 200) + "'.replace('x', long) == ''", "'x'.replace('x', long) != ''"},
		{"put between the letters", "long.replace('', long) == ''", "x.text.replace('', long) != ''"},
		{"a pattern of a byte more than is allowed", "'a'.matches(long.substring(0, 8193))", "!'a'.matches(long.substring(0, 8192))"},
		{"a pattern of too many instructions", "'a'.matches('a{1000}a{1000}' + 'a{1000}a{1000}')", "!'a'.matches('a{1000}a{1000}' + 'a{1000}')"},
		{"a constant one of too many", "'a'.matches('a{1000}a{1000}a{1000}a{1000}')", "!'a'.matches('a{1000}a{1000}a{1000}')"},
		{"one of large classes", "'a'.matches('" + strings.Repeat(`\\pL`, 100) + "')", "!'a'.matches('" + strings.Repeat(`\\pL`, 2) + "')"},
		{"a constant one", "'a'.matches('" + strings.Repeat("x", 8193) + "')", "!'a'.matches('" + strings.Repeat("x", 8192) + "')"},
		{"a pattern that is too large, to replace", "regex.replace('a', long, '') == ''", "regex.replace('a', 'b', '') == 'a'"},
		{"a pattern that finds much, replaced by a large text", "regex.replace(long, '.', long) == ''", "regex.replace('a', '.', 'b') == 'b'"},
		{"a pattern that is too large, to find", "'a'.find(long) == ''", "'a'.find('b') == ''"},
	}
	env := newEnv(t)
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			_, err := evaluate(t, env, test.refused, &meter{most: 10 * cost.MaxCost})
			if _, ok := errors.AsType[*cost.ExceededError](err); !ok {
				t.Errorf("got %v", err)
			}
			if held, err := evaluate(t, env, test.twin, &meter{most: 10 * cost.MaxCost}); held != types.True || err != nil {
				t.Errorf("the twin: %v, %v", held, err)
			}
		})
	}
}

func TestMeterStops(t *testing.T) {
	env := newEnv(t)
	tests := []struct {
		reason, expression string
		most               uint64
		want               error
	}{
		{"more than there is", "long == long", 100, errSpent},
		{"less than there is", "x.text == x.text", 100, nil},
		{"what a function made is more than there is", "'%s'.format([long]).size() > 0", 3000, errSpent},
		{"its output is less", "'%s'.format([long]).size() > 0", 5000, nil},
		{"the first of two lists is large, and none of its items are compared", "sets.contains(more, [])", cost.MaxCost, errSpent},
		{"as large as may be", "sets.contains(million, [])", cost.MaxCost, nil},
		{"a list that weighs more than may be", "moreTexts == 1", cost.MaxCost, errSpent},
		{"as much as may be", "texts == 1", cost.MaxCost, nil},
		{"a map that weighs more than may be", "moreMembers == 1", cost.MaxCost, errSpent},
		{"as much as may be", "members == 1", cost.MaxCost, nil},
		{"an object with a last name that reaches the bound, and has a value", "moreNamed == 1", cost.MaxCost, errSpent},
		{"an object that is a name short of it", "named == 1", cost.MaxCost, nil},
		{"a list that has another in it many times, and that one a third", "cel.bind(a, list.map(i, 1), cel.bind(b, list.map(i, a), cel.bind(c, list.map(i, b), cel.bind(d, list.map(i, c), d == d))))", cost.MaxCost, errSpent},
		{"a map that has another in it twice, and that one a third, and so on", "cel.bind(a, x, " + strings.Repeat("cel.bind(a, {1: a, 2: a}, ", 40) + "a == a" + strings.Repeat(")", 41), cost.MaxCost, errSpent},
		{"the second one is large", "sets.contains([], more)", cost.MaxCost, errSpent},
		{"as large as may be", "sets.contains([], million)", cost.MaxCost, nil},
	}
	for _, test := range tests {
		if _, err := evaluate(t, env, test.expression, &meter{most: test.most}); !errors.Is(err, test.want) {
			t.Errorf("%s: %s: %v, want %v", test.reason, test.expression, err, test.want)
		}
	}
}

func TestWithoutAMeter(t *testing.T) {
	env := newEnv(t)
	program, err := program(t, env, "long == long")
	if err != nil {
		t.Fatal(err)
	}
	for reason, given := range map[string]any{"none": nil, "a text": "x"} {
		if value, _, err := program.Eval(map[string]any{"long": strings.Repeat("x", 32_000), meterName: given}); value != types.True || err != nil {
			t.Errorf("%s: %v, %v", reason, value, err)
		}
	}
}

func TestConstantPatterns(t *testing.T) {
	env := newEnv(t)
	for _, test := range []struct{ reason, refused, twin string }{
		{"matched", "x.text.matches('(')", "x.text.matches('[(]')"},
		{"found", "x.text.find('(') == ''", "x.text.find('[(]') == ''"},
		{"found all", "x.text.findAll('(') == []", "x.text.findAll('[(]') == []"},
	} {
		if _, err := program(t, env, test.refused); err == nil || !strings.Contains(err.Error(), "missing closing )") {
			t.Errorf("%s: %v", test.reason, err)
		}
		if _, err := program(t, env, test.twin); err != nil {
			t.Errorf("%s, the twin: %v", test.reason, err)
		}
	}
}

func Example() {
	env, err := celgo.NewEnv(celgo.Variable("text", celgo.StringType))
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := cost.New(env, meterName)
	if err != nil {
		fmt.Println(err)
		return
	}
	ast, issues := env.Compile("text + text == ''")
	if issues.Err() != nil {
		fmt.Println(issues.Err())
		return
	}
	program, err := env.Program(ast, celgo.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if call, ok := i.(interpreter.InterpretableCall); ok {
			return list.Call(call)
		}
		return i, nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	m := &meter{most: cost.MaxCost}
	_, _, err = program.Eval(map[string]any{"text": strings.Repeat("x", 8000), meterName: m})
	fmt.Println(m.spent, err)
	_, _, err = program.Eval(map[string]any{"text": strings.Repeat("x", 3<<20), meterName: m})
	fmt.Println(err)
	// Output:
	// 3000 <nil>
	// the bound of 4194304 for the bytes of a text is exceeded: make the expression simpler, or look at less data
}
