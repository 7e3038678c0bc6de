package jmespath

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// AbsentError means that a function does not accept the null of an absent value. It never
// concerns an element of a list, or data from a statement or an image: otherwise the author of
// the data could make the value of all elements absent.
type AbsentError struct {
	Expression string
	Err        error // names the function and the argument
}

// Error implements error.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("expression %q: %v", function.Shorten(e.Expression), e.Err)
}

// Unwrap returns the cause.
func (e *AbsentError) Unwrap() error { return e.Err }

// ErrNull is wrapped by the error of a function that does not accept null.
var ErrNull = errors.New("null")

// callsInside reports whether a call is evaluated on the elements of a list or a map.
func callsInside(node jp.ASTNode, inside bool) bool {
	if inside && node.NodeType == jp.ASTFunctionExpression {
		return true
	}
	for i, child := range node.Children {
		within := inside
		switch node.NodeType {
		case jp.ASTProjection, jp.ASTValueProjection, jp.ASTFilterProjection:
			within = inside || i > 0
		case jp.ASTExpRef:
			within = true
		}
		if callsInside(child, within) {
			return true
		}
	}
	return false
}

// optionalCall calls a function, unless its data is absent.
const optionalCall = "(optional)"

// optional is a call in the left side of [] or [?...].
type optional struct {
	name string
	data []int // the arguments that are not written in the expression
}

// settled evaluates the left side of [] or [?...] before the projection: the library treats an
// error there as null, and a pipe treats only a missing key as null. A function with only absent
// arguments is null in such a left side: [values(data), values(binaryData)][] of an object
// without binaryData has the values of data.
func (e *Engine) settled(left jp.ASTNode, project func(left jp.ASTNode) jp.ASTNode) jp.ASTNode {
	rest := project(jp.ASTNode{NodeType: jp.ASTCurrentNode})
	return jp.ASTNode{NodeType: jp.ASTPipe, Children: []jp.ASTNode{e.absent(left), rest}}
}

// absent makes the calls in a left side optional, except in conditions, where null would
// decide.
func (e *Engine) absent(node jp.ASTNode) jp.ASTNode {
	c := node.Children
	name, _ := node.Value.(string)
	switch node.NodeType {
	case jp.ASTComparator, jp.ASTNotExpression:
		return node
	case jp.ASTFunctionExpression:
		if strings.HasPrefix(name, orderOf) || name == threeValued {
			return node
		}
	case jp.ASTAndExpression:
		c[1] = e.absent(c[1])
		return node
	case jp.ASTFilterProjection:
		c[0], c[1] = e.absent(c[0]), e.absent(c[1])
		return node
	}
	for i := range c {
		c[i] = e.absent(c[i])
	}
	if node.NodeType == jp.ASTFunctionExpression {
		if data := e.needs(name, c); len(data) > 0 {
			return call(optionalCall, append([]jp.ASTNode{literal(&optional{name: name, data: data})}, c...)...)
		}
	}
	return node
}

// needs returns which arguments of a call are data; none if the function accepts null for one of
// them.
func (e *Engine) needs(name string, arguments []jp.ASTNode) []int {
	f, named := e.functions[name]
	inserted := slices.Contains([]string{payList, sortKeys, maxKeys, minKeys}, name)
	if !named && !inserted {
		return nil
	}
	var data []int
	for i, argument := range arguments {
		if isWritten(argument) {
			continue
		}
		if named && !f.Native && f.Arguments[min(i, len(f.Arguments)-1)]&function.Null != 0 {
			return nil
		}
		data = append(data, i)
	}
	return data
}

// isWritten reports whether an argument is in the text of the expression.
func isWritten(node jp.ASTNode) bool {
	text, _ := node.Value.(string)
	return node.NodeType == jp.ASTExpRef || node.NodeType == jp.ASTLiteral && !strings.ContainsRune(text, markOpen)
}

// callOptional returns null if all data of a call is null. For foreign data that is an error of
// the function: otherwise the author of the data would choose the dropped entries.
func (r *run) callOptional(given []any) (any, error) {
	o, arguments := given[0].(*optional), given[1:]
	if !r.foreign && !slices.ContainsFunc(o.data, func(i int) bool { return arguments[i] != nil }) {
		return nil, nil
	}
	return r.caller.CallFunction(o.name, arguments, jp.NewInterpreter())
}
