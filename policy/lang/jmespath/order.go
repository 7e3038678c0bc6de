package jmespath

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// ErrNoOrder is wrapped by errors for an order of values that have none. The library treats such
// a comparison as null, so that a filter would drop the item.
var ErrNoOrder = errors.New("have no order")

// The library's comparisons by order are replaced by calls of ours, and conditions with
// one in them by calls that evaluate `&&`, `||` and `!` in three-valued logic.
const (
	orderOf       = "(order "
	orderedNumber = "(to_number)"
	threeValued   = "(logic)"
)

// comparators are the library's marks of `<`, `<=`, `>` and `>=`, which it does not export.
func comparators() map[any]string {
	marks := map[any]string{}
	for _, operator := range []string{"<", "<=", ">", ">="} {
		if node, err := parse("a " + operator + " b"); err == nil {
			marks[node.Value] = operator
		}
	}
	return marks
}

// order replaces a comparison by order. A side that can never be compared is refused.
func (e *Engine) order(node jp.ASTNode) (jp.ASTNode, error) {
	if node.NodeType != jp.ASTComparator {
		return node, nil
	}
	operator, ok := e.comparators[node.Value]
	if !ok {
		return node, nil
	}
	for _, side := range node.Children {
		if literal, isLiteral := side.Value, side.NodeType == jp.ASTLiteral; isLiteral && isScalar(side) && function.KindOf(literal) != function.Number {
			return node, fmt.Errorf("%s: %s has no order: write a number between backquotes, as in score %s `7.0`", operator, Text(literal), operator)
		}
	}
	return call(orderOf+operator+")", node.Children...), nil
}

// condition rewrites the condition of a filter, so that an indeterminate operand counts only if
// it decides the result.
func condition(node jp.ASTNode) jp.ASTNode {
	switch node.NodeType {
	case jp.ASTOrExpression, jp.ASTAndExpression, jp.ASTNotExpression:
	default:
		return node
	}
	for i := range node.Children {
		node.Children[i] = condition(node.Children[i])
	}
	if node.NodeType == jp.ASTNotExpression || !orders(node.Children[0]) {
		return node // an error of the last operand is the result's
	}
	return call(threeValued, jp.ASTNode{NodeType: jp.ASTCurrentNode}, literal(&either{
		or: node.NodeType == jp.ASTOrExpression, first: node.Children[0], second: node.Children[1],
	}))
}

// orders reports whether a tree compares by order, or needs a number.
func orders(node jp.ASTNode) bool {
	if name, ok := node.Value.(string); ok && node.NodeType == jp.ASTFunctionExpression &&
		(strings.HasPrefix(name, orderOf) || name == threeValued || name == orderedNumber) {
		return true
	}
	return slices.ContainsFunc(node.Children, orders)
}

// either is `&&` or `||` with a first operand that may be indeterminate.
type either struct {
	or            bool
	first, second jp.ASTNode
}

// registerOrder registers the calls that Compile puts in.
func (r *run) registerOrder() {
	register := func(name string, handler func(given []any) (any, error)) {
		r.caller.Register(jp.FunctionEntry{Name: name, Handler: handler})
	}
	for operator, holds := range map[string]func(a, b float64) bool{
		"<": func(a, b float64) bool { return a < b }, "<=": func(a, b float64) bool { return a <= b },
		">": func(a, b float64) bool { return a > b }, ">=": func(a, b float64) bool { return a >= b },
	} {
		register(orderOf+operator+")", func(given []any) (any, error) { return r.compare(operator, given, holds) })
	}
	register(orderedNumber, r.toNumber)
	register(threeValued, r.logic)
}

// compare compares two numbers. Null, which is also a missing field, is not ordered, as in
// Kyverno; in foreign data it is indeterminate, as everything else is in any data.
func (r *run) compare(operator string, given []any, holds func(a, b float64) bool) (any, error) {
	a, isNumber := given[0].(float64)
	b, alsoNumber := given[1].(float64)
	switch {
	case isNumber && alsoNumber && !math.IsNaN(a) && !math.IsNaN(b):
		return holds(a, b), nil
	case !r.foreign && (given[0] == nil || given[1] == nil):
		return nil, nil
	}
	return nil, r.meter.indeterminate(fmt.Errorf("%s %s %s: %s and %s %w", brieflyOf(given[0]), operator,
		brieflyOf(given[1]), function.KindOf(given[0]), function.KindOf(given[1]), ErrNoOrder))
}

// indeterminate records an error, because the library treats some errors as null.
func (m *meter) indeterminate(err error) error {
	if m.unknown == nil {
		m.unknown = err
	}
	return err
}

func brieflyOf(value any) string {
	if function.KindOf(value)&(function.Array|function.Object) != 0 {
		return function.KindOf(value).String()
	}
	return function.Shorten(Text(value))
}

// numbered replaces to_number, which makes null of everything that is no number: the author of the
// data would choose that a limit does not hold, or the default of the expression.
func numbered(node jp.ASTNode) jp.ASTNode {
	if node.NodeType == jp.ASTFunctionExpression && node.Value == "to_number" {
		node.Value = orderedNumber
	}
	return node
}

// comparesNull reports whether a node may ask if to_number found a number, as by == and type.
func (e *Engine) comparesNull(node jp.ASTNode) bool {
	if node.NodeType == jp.ASTComparator {
		_, isOrder := e.comparators[node.Value]
		return !isOrder
	}
	return node.NodeType == jp.ASTFunctionExpression && node.Value == "type"
}

// toNumber is to_number: text that is no number is an error, and not null.
func (r *run) toNumber(given []any) (any, error) {
	switch v := given[0].(type) {
	case nil, float64:
		return v, nil
	case string:
		if number := function.NumberIn(v); number != nil {
			return number, nil
		}
	}
	return nil, r.meter.indeterminate(fmt.Errorf("to_number: %s is no number, and values of two kinds %w", brieflyOf(given[0]), ErrNoOrder))
}

// logic evaluates `&&` and `||`: an operand that is indeterminate counts unless the other
// one decides.
func (r *run) logic(given []any) (any, error) {
	operands := given[1].(*either)
	first, why, err := r.operand(operands.first, given[0])
	if err != nil || why == nil && isFalse(first) != operands.or {
		return first, err
	}
	second, late, err := r.operand(operands.second, given[0])
	switch {
	case err != nil:
		return nil, err
	case late == nil && (why == nil || isFalse(second) != operands.or):
		return second, nil
	case why == nil:
		why = late
	}
	return nil, r.meter.indeterminate(why)
}

// operand evaluates an operand, and returns why it is indeterminate.
func (r *run) operand(node jp.ASTNode, on any) (value any, why, err error) {
	before := r.meter.unknown
	r.meter.unknown = nil
	value, err = jp.NewInterpreter().Execute(node, on, jp.WithFunctionCaller(r.caller))
	why, r.meter.unknown = r.meter.unknown, before
	if missing := (jp.NotFoundError{}); why != nil || errors.As(err, &missing) {
		return nil, why, nil
	}
	return value, nil, err
}

// isFalse reports whether a value counts as false (JMESPath, "Or Expressions").
func isFalse(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// sortable refuses foreign texts if their order as text differs from the order of the amounts,
// versions or times in them: "9.8" comes after "10.0".
func (r *run) sortable(list []any) error {
	if !r.foreign {
		return nil
	}
	sorted := textsOf(list)
	slices.Sort(sorted)
	for i := 1; i < len(sorted); i++ {
		if order, known, same := written(sorted[i-1], sorted[i]); !same || known && order > 0 {
			return r.meter.indeterminate(fmt.Errorf("%q and %q as texts %w", function.Shorten(sorted[i-1]), function.Shorten(sorted[i]), ErrNoOrder))
		}
	}
	return nil
}

// written compares two texts by the values that they write. Same is false if only one of them
// writes an amount, a version or a time.
func written(a, b string) (order int, known, same bool) {
	if x, y, both, one := readBoth(a, b, function.ParseQuantity); one {
		return x.Cmp(y), both, both
	}
	if x, y, both, one := readBoth(a, b, time.ParseDuration); one {
		return int(x - y), both, both
	}
	if x, y, both, one := readBoth(a, b, semver.Parse); one {
		return x.Compare(y), both, both
	}
	if x, y, both, one := readBoth(a, b, function.ParseTime); one {
		return x.Compare(y), both, both
	}
	return 0, false, true
}

func readBoth[T any](a, b string, read func(string) (T, error)) (x, y T, both, one bool) {
	x, err1 := read(a)
	y, err2 := read(b)
	return x, y, err1 == nil && err2 == nil, err1 == nil || err2 == nil
}

// textsOf returns the texts of a list.
func textsOf(list []any) []string {
	var texts []string
	for _, item := range list {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// sorting makes a function of one that orders a list of texts.
func (r *run) sorting(call func(function.Arguments) (any, error)) func(function.Arguments) (any, error) {
	return func(a function.Arguments) (any, error) {
		if err := r.sortable(a.List(0)); err != nil {
			return nil, err
		}
		return call(a)
	}
}

// sorts reports whether a function orders a list of texts.
func sorts(name string) bool { return name == "sort" || name == "max" || name == "min" }
