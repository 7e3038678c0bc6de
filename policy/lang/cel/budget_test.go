package cel_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestBudget has expressions that would run for hours or fill the memory, and their
// honest twins.
func TestBudget(t *testing.T) {
	doubled := func(start, use string) string {
		text := "cel.bind(v0, " + start + ", "
		for i := range 40 {
			text += fmt.Sprintf("cel.bind(v%d, v%d + v%d, ", i+1, i, i)
		}
		return text + strings.ReplaceAll(use, "$", "v40") + strings.Repeat(")", 41)
	}
	thousand := "lists.range(1000)"
	tests := []struct{ reason, expression, twin string }{
		{"loops in loops", thousand + ".all(a, " + thousand + ".all(b, " + thousand + ".all(c, a + b + c >= 0)))", thousand + ".all(a, a >= 0)"},
		{"a text that doubles", doubled("'x'", "$.size() > 0"), "('x' + 'x').size() > 0"},
		{"a list that doubles", doubled("[1]", "$.size() > 0"), "([1] + [1]).size() > 0"},
		{"a list that doubles, compared", doubled("[1]", "$ == $"), "[1, 1] == [1] + [1]"},
		{"bytes that double", doubled("b'x'", "$.size() > 0"), "(b'x' + b'x').size() > 0"},
		{"an endless range", "lists.range(9223372036854775807).size() > 0", thousand + ".size() > 0"},
		{"a replacement of everything by much", "object.long.replace('', object.long).size() > 0", "object.text.replace('', object.text).size() > 0"},
		{"a text joined with itself", thousand + ".map(i, object.long).join(object.long).size() > 0", "['a'].join('b').size() > 0"},
		{"formatted again and again", "'" + strings.Repeat("%s", 100) + "'.format(" + thousand + ".map(i, object.long)).size() > 0", "'%s'.format([object.text]).size() > 0"},
		{"a heavy pattern over a long text", thousand + ".all(i, (object.long + string(i)).matches('(' + '(a|b)*c?'.replace('', 'x*') + ')*'))", "object.long.matches('x*')"},
		{"a constant pattern over long texts", thousand + ".all(i, (object.long + string(i)).matches('(a*)*(b*)*(c*)*(x*)*'))", "object.long.matches('(a*)*')"},
		{"a pattern of its own making", "'a'.matches(object.long)", "'a'.matches('a' + '')"},
		{"unpacked again and again", thousand + ".all(i, gzip.decompress(gzip.compress(object.long + string(i))).size() > 0)", "gzip.decompress(gzip.compress('a')) == 'a'"},
		{"JSON of the same text many times", "json.marshal(" + thousand + ".map(i, object.long)).size() > 0", "json.marshal({'a': 1}) == '{\"a\":1}'"},
		{"distinct items of many", "lists.range(50000).distinct().size() > 0", "[1, 1].distinct().size() == 1"},
		{"calls in loops", "lists.range(100000).all(a, lists.range(100).all(b, verify('a', []) > 0))", "verify('a', []) > 0"},
		{"certificates decoded again and again", thousand + ".all(i, x509.decode(object.certificate).Version == 3.0)", "x509.decode(object.certificate).Version == 3.0"},
		{"a long text with a certificate", "x509.decode(lists.range(20).map(i, object.long).join() + object.certificate).Version == 3.0", "x509.decode(object.text + '\\n' + object.certificate).Version == 3.0"},
		{"a quantity with a large exponent", "quantity(object.exponent).isGreaterThan(quantity('1'))", "quantity('1e' + '999').isGreaterThan(quantity('1'))"},
		{"a constant with a large exponent", "quantity('1E99999999').add(1).isInteger()", "quantity('1E2').add(1).isInteger()"},
		{"a negative exponent", "isQuantity('1e-' + object.nines)", "!isQuantity('a1e-' + object.nines)"},
		{"an exponent beyond 32 bits", "isQuantity('-1.5e+' + object.nines + object.nines)", "isQuantity('-1.5e+' + '3')"},
		{"a number without a digit", "isQuantity('e' + object.nines)", "isQuantity('5Ei') && isQuantity('5E')"},
		{"a quantity of many digits", "isQuantity(object.long.replace('x', '1') + 'Ki')", "isQuantity('1111Ki')"},
		{"a hash is no number with an exponent", "isQuantity('1e99999')", "!isQuantity('0aed6dcda825376d9db8635e834cbb84909e0462baed40cd5eff1297de472425')"},
		{"split into letters", thousand + ".all(i, object.long.split('').size() > 0)", "'abc'.split('').size() == 3"},
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	env, err := cel.NewEnv(options())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := scopeOf(t, env)
			in := inputs()
			in.Variables["object"] = map[string]any{"long": strings.Repeat("x", 20_000), "text": "abc", "certificate": certificate, "exponent": "1e99999999", "nines": "99999999"}
			began := time.Now()
			_, err := compile(t, s, test.expression).Bool(t.Context(), s.NewActivation(in))
			if _, ok := errors.AsType[*cel.BudgetError](err); !ok {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			if held, err := compile(t, s, test.twin).Bool(t.Context(), s.NewActivation(in)); !held || err != nil {
				t.Errorf("the honest twin: %v, %v", held, err)
			}
		})
	}
}

// TestBudgetIsNotAbsorbed: an expression that was stopped has no result.
func TestBudgetIsNotAbsorbed(t *testing.T) {
	s := newScope(t)
	_, err := compile(t, s, "lists.range(9223372036854775807).size() > 0 || lists.range(1000).all(a, lists.range(1000).all(b, true)) || true").Bool(t.Context(), s.NewActivation(inputs()))
	if _, ok := errors.AsType[*cel.BudgetError](err); !ok {
		t.Errorf("got %v", err)
	}
}

// TestStoppedVariable: a variable that was stopped during evaluation has no value for the next
// expression either, and is evaluated again where there is time.
func TestStoppedVariable(t *testing.T) {
	s := newScope(t)
	for _, v := range [][2]string{{"dear", "lists.range(1000).all(a, lists.range(1000).all(b, true))"}, {"late", "verify('a', [])"}} {
		if err := s.Declare("v", v[0], v[1]); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	in := inputs()
	in.Functions = map[string]cel.Call{"verify": func(ctx context.Context, _ []ref.Val) (any, error) {
		cancel()
		return int64(1), ctx.Err()
	}}
	a := s.NewActivation(in)
	for range 2 {
		_, err := compile(t, s, "variables.dear || true").Bool(t.Context(), a)
		if _, ok := errors.AsType[*cel.BudgetError](err); !ok {
			t.Errorf("got %v", err)
		}
	}
	late := compile(t, s, "variables.late > 0")
	if _, err := late.Bool(ended, a); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if held, err := late.Bool(t.Context(), a); !held || err != nil {
		t.Errorf("while there is time: %t, %v", held, err)
	}
}

// TestTotalBudget bounds a document of expressions that are each just cheap enough.
func TestTotalBudget(t *testing.T) {
	s := newScope(t)
	p := compile(t, s, "lists.range(300).all(a, lists.range(300).all(b, true))")
	a := s.NewActivation(inputs())
	for i := range 100 {
		held, err := p.Bool(t.Context(), a)
		if _, ok := errors.AsType[*cel.BudgetError](err); ok && i > 3 {
			return
		}
		if !held || err != nil {
			t.Fatal(i, held, err)
		}
	}
	t.Error("a hundred expensive expressions were evaluated")
}

func TestContextEnds(t *testing.T) {
	s := newScope(t)
	loop := compile(t, s, "lists.range(1000).all(a, lists.range(100).all(b, verify('a', []) > 0))")
	ended, cancel := context.WithCancel(t.Context())
	in := inputs()
	calls := 0
	in.Functions = map[string]cel.Call{"verify": func(context.Context, []ref.Val) (any, error) {
		calls++
		if calls == 10 {
			cancel()
		}
		return int64(1), nil
	}}
	if _, err := loop.Bool(ended, s.NewActivation(in)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if calls > 500 {
		t.Errorf("went on for %d calls", calls)
	}
	if _, err := compile(t, s, "true").Bool(ended, s.NewActivation(inputs())); !errors.Is(err, context.Canceled) {
		t.Errorf("began after the end: %v", err)
	}
	calls = 0
	if _, err := compile(t, s, "verify('a', []) > 0").Bool(ended, s.NewActivation(in)); !errors.Is(err, context.Canceled) || calls != 0 {
		t.Errorf("called %d times after the end: %v", calls, err)
	}
	if held, err := compile(t, s, "true").Bool(t.Context(), s.NewActivation(inputs())); !held || err != nil {
		t.Error(held, err)
	}
}

// TestPanic of a function is an error of the expression.
func TestPanic(t *testing.T) {
	s := newScope(t)
	in := inputs()
	in.Functions = map[string]cel.Call{"verify": func(context.Context, []ref.Val) (any, error) { panic("oops") }}
	if _, err := compile(t, s, "verify('a', []) > 0 || true").Bool(t.Context(), s.NewActivation(in)); err == nil || !strings.Contains(err.Error(), "oops") {
		t.Errorf("got %v", err)
	}
}
