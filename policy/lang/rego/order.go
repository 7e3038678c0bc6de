package rego

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/types"
)

// Rego puts everything into one order: null < false < 7 < "3" < [] < {}. So a score of
// "3" is at least 7, and null at most 0. Here such a comparison is an error, which ends
// the evaluation: were it undefined, "not" would make a yes of it.

// stricter are functions of Rego that return an order, or a number, where there is none,
// or a wrong one, each with its replacement in a compiled policy. No policy can define or
// call these names, and Rego's own are not available.
func stricter() map[string]strict {
	all := map[string]strict{
		"lt":             {name: "<", infix: true, two: compared(func(order int) bool { return order < 0 })},
		"lte":            {name: "<=", infix: true, two: compared(func(order int) bool { return order <= 0 })},
		"gt":             {name: ">", infix: true, two: compared(func(order int) bool { return order > 0 })},
		"gte":            {name: ">=", infix: true, two: compared(func(order int) bool { return order >= 0 })},
		"min":            {name: "min()", one: func(v ast.Value) (*ast.Term, error) { return furthest(v, -1) }},
		"max":            {name: "max()", one: func(v ast.Value) (*ast.Term, error) { return furthest(v, 1) }},
		"sort":           {name: "sort()", one: sorted},
		"sum":            {name: "sum()", one: sum},
		"to_number":      {name: "to_number()", one: toNumber},
		"json.unmarshal": {name: "json_unmarshal()", one: unmarshal},
	}
	for name, operand := range patterns() {
		all[name] = measured(name, operand)
	}
	return all
}

// strict is a function of one operand, of two, or of any number.
type strict struct {
	name  string
	infix bool
	one   func(ast.Value) (*ast.Term, error)
	two   func(a, b ast.Value) (*ast.Term, error)
	all   rego.BuiltinDyn
}

// functions declares the replacements of Rego's own functions, with the same types.
func functions() (list []func(*rego.Rego)) {
	for own, f := range stricter() {
		decl := &rego.Function{Name: f.name, Decl: declared(own)}
		if f.all != nil {
			list = append(list, rego.FunctionDyn(decl, f.all))
			continue
		}
		if f.two != nil {
			list = append(list, rego.Function2(decl, func(_ rego.BuiltinContext, a, b *ast.Term) (*ast.Term, error) { return halt(f.two(a.Value, b.Value)) }))
			continue
		}
		list = append(list, rego.Function1(decl, func(_ rego.BuiltinContext, a *ast.Term) (*ast.Term, error) { return halt(f.one(a.Value)) }))
	}
	return list
}

func declared(name string) *types.Function { return ast.BuiltinMap[name].Decl }

// halt lets an error end the evaluation at once.
func halt(term *ast.Term, err error) (*ast.Term, error) {
	if err != nil {
		return nil, rego.NewHaltError(err)
	}
	return term, nil
}

// order replaces calls in a policy by the stricter functions, and writes its numbers in a
// form that OPA compares correctly. A function that the policy defines or imports is not
// replaced.
func order(m *ast.Module) (err error) {
	own := map[string]bool{}
	for _, rule := range m.Rules {
		own[rule.Head.Ref()[0].Value.String()] = true
	}
	for _, one := range m.Imports {
		own[one.Name().String()] = true
	}
	instead := stricter()
	for name, f := range instead {
		if f.infix && own[name] {
			return fmt.Errorf("%s is what Rego calls %s: give it another name", name, f.name)
		}
	}
	replace := func(call []*ast.Term) {
		ref, _ := call[0].Value.(ast.Ref)
		if f, is := instead[ref.String()]; is && !own[ref[0].Value.String()] {
			call[0] = ast.NewTerm(ast.Ref{ast.VarTerm(f.name)}).SetLocation(call[0].Location)
		}
	}
	ast.NewGenericVisitor(func(n any) bool {
		switch n := n.(type) {
		case *ast.Expr:
			if call, is := n.Terms.([]*ast.Term); is {
				replace(call)
			}
		case ast.Call:
			replace(n)
		case *ast.Term:
			if number, is := n.Value.(ast.Number); is {
				plain, fault := plain(string(number))
				if fault != nil {
					err = fmt.Errorf("%s: %w", n.Location, fault)
				} else if plain != string(number) { // terms of small numbers are shared
					n.Value = ast.Number(plain)
				}
			}
		}
		return false
	}).Walk(m)
	return err
}

func compared(holds func(order int) bool) func(a, b ast.Value) (*ast.Term, error) {
	return func(a, b ast.Value) (*ast.Term, error) {
		order, err := compare(a, b)
		return ast.InternedTerm(holds(order)), err
	}
}

// compare supports two numbers or two strings, and no other pair.
func compare(a, b ast.Value) (int, error) {
	switch a := a.(type) {
	case ast.Number:
		if b, is := b.(ast.Number); is {
			return compareNumbers(a, b), nil
		}
	case ast.String:
		if b, is := b.(ast.String); is {
			return cmp.Compare(a, b), nil
		}
	}
	return 0, fmt.Errorf("%s was compared with %s, and only two numbers or two strings have an order: ask is_number or is_string first", said(a), said(b))
}

// compareNumbers compares exactly; ast.NumberCompare takes 10.0 for 1, and 1.5e-10 for
// 1.5e-100.
func compareNumbers(a, b ast.Number) int {
	x, isX := a.Int64()
	y, isY := b.Int64()
	if isX && isY {
		return cmp.Compare(x, y)
	}
	return rational(a).Cmp(rational(b))
}

// rational refuses exponents beyond a million, which would exhaust memory. Only a product
// computed by a policy gets there, and the panic ends its evaluation.
func rational(n ast.Number) *big.Rat {
	r, ok := new(big.Rat).SetString(string(n))
	if !ok {
		panic("the number " + shorten(string(n)) + " is too large or too small")
	}
	return r
}

// items returns those of an array or set.
func items(v ast.Value) (list []*ast.Term, err error) {
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(func(one *ast.Term) { list = append(list, one) })
		return list, nil
	case ast.Set:
		return v.Slice(), nil
	}
	return nil, fmt.Errorf("want an array or a set, found %s", said(v))
}

// furthest returns the first item in an order, or the last one; nil if there is none.
func furthest(v ast.Value, way int) (*ast.Term, error) {
	list, err := items(v)
	if len(list) == 0 {
		return nil, err
	}
	found := list[0]
	for _, one := range list { // the first one, too, for it may have no order
		order, err := compare(one.Value, found.Value)
		if err != nil {
			return nil, err
		}
		if order*way > 0 {
			found = one
		}
	}
	return found, nil
}

// sorted requires that neighbours, and their first difference, are of one type.
func sorted(v ast.Value) (*ast.Term, error) {
	list, err := items(v)
	if err != nil {
		return nil, err
	}
	array := ast.NewArray(list...).Sorted()
	for i := 1; i < array.Len(); i++ {
		if err := alike(array.Elem(i-1).Value, array.Elem(i).Value); err != nil {
			return nil, err
		}
	}
	return ast.NewTerm(array), nil
}

func alike(a, b ast.Value) error {
	x, isX := a.(*ast.Array)
	y, isY := b.(*ast.Array)
	switch {
	case isX && isY:
		for i := range min(x.Len(), y.Len()) {
			if p, q := x.Elem(i).Value, y.Elem(i).Value; p.Compare(q) != 0 {
				return alike(p, q)
			}
		}
		return nil
	case ast.ValueName(a) != ast.ValueName(b):
		return fmt.Errorf("%s and %s have no order: let it sort values of one type", said(a), said(b))
	}
	return nil
}

// sum is exact, where OPA's begins anew below zero when integers exceed 64 bits.
func sum(v ast.Value) (*ast.Term, error) {
	list, err := items(v)
	if err != nil {
		return nil, err
	}
	total := new(big.Rat)
	for _, one := range list {
		number, is := one.Value.(ast.Number)
		if !is {
			return nil, fmt.Errorf("%s is no number, and has no sum", said(one.Value))
		}
		total.Add(total, rational(number))
	}
	if total.IsInt() {
		return ast.NewTerm(ast.Number(total.Num().String())), nil
	}
	f, _ := total.Float64()
	text, err := plain(fmt.Sprint(f))
	return ast.NewTerm(ast.Number(text)), err
}

// toNumber refuses values that are no numbers: Rego's own returns 0 for null and false,
// and 1 for true.
func toNumber(v ast.Value) (*ast.Term, error) {
	switch v := v.(type) {
	case ast.Number:
		return ast.NewTerm(v), nil
	case ast.String:
		text, err := plain(string(v))
		return ast.NewTerm(ast.Number(text)), err
	}
	return nil, fmt.Errorf("%s is no number: ask is_number or is_string first", said(v))
}

func unmarshal(v ast.Value) (*ast.Term, error) {
	text, is := v.(ast.String)
	if !is {
		return nil, fmt.Errorf("%s is no JSON", said(v))
	}
	data, err := Decode([]byte(text))
	if err != nil {
		return nil, errors.New("it is no JSON: " + err.Error())
	}
	value, err := ast.InterfaceToValue(data)
	return ast.NewTerm(value), err
}

// said describes a value in an error, by its type and, if it is short, in its written
// form.
func said(v ast.Value) string {
	name := ast.ValueName(v)
	switch v.(type) {
	case ast.Null:
		return name
	case ast.Boolean, ast.Number, ast.String:
		if text := v.String(); len(text) <= 50 {
			return "the " + name + " " + text
		}
	}
	if strings.ContainsRune("ao", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}
