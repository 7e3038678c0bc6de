package jmespath

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// prepare refuses expressions that would only fail later: functions that do not exist, calls with
// the wrong number of arguments, and `&` in an argument that accepts no expression. It inserts
// the calls that charge for the growth of data.
func (e *Engine) prepare(node jp.ASTNode, depth int) (jp.ASTNode, error) {
	if depth > maxDepth {
		return node, function.TooLarge("the depth of the expression", depth, maxDepth)
	}
	if node.NodeType == jp.ASTExpRef {
		return node, errors.New("& is only for a function that takes an expression, as in sort_by(list, &name)")
	}
	expression := -1
	if node.NodeType == jp.ASTFunctionExpression {
		at, err := e.checkCall(node)
		if err != nil {
			return node, err
		}
		expression = at
	}
	for i := range node.Children {
		child := &node.Children[i]
		if i == expression {
			child = &child.Children[0]
		}
		prepared, err := e.prepare(*child, depth+1)
		if err != nil {
			return node, err
		}
		if !e.comparesNull(node) {
			prepared = numbered(prepared)
		}
		*child = prepared
	}
	if node.NodeType == jp.ASTFilterProjection {
		node.Children[2] = condition(node.Children[2])
	}
	node, err := e.order(node)
	return e.pay(node), err
}

// checkCall returns which argument of a call is an expression, or -1.
func (e *Engine) checkCall(node jp.ASTNode) (int, error) {
	name, _ := node.Value.(string)
	f, ok := e.functions[name]
	if !ok {
		return 0, fmt.Errorf("there is no function %q", strings.Trim(name, string(markOpen)+string(markClose)))
	}
	if got, want := len(node.Children), len(f.Arguments); !f.Takes(got) {
		return 0, fmt.Errorf("%s: want %d arguments, got %d", name, want, got)
	}
	at, ok := function.ExpressionAt()[name]
	if !ok {
		return -1, nil
	}
	if node.Children[at].NodeType != jp.ASTExpRef {
		return 0, fmt.Errorf("%s: argument %d: want an expression such as &name", name, at+1)
	}
	return at, nil
}

// pay inserts charges into a node after its children have theirs.
func (e *Engine) pay(node jp.ASTNode) jp.ASTNode {
	c := node.Children
	switch node.NodeType {
	case jp.ASTProjection:
		if c[0].NodeType == jp.ASTFlatten {
			flat := c[0].Children
			return e.settled(flat[0], func(left jp.ASTNode) jp.ASTNode {
				flat[0] = paid(payFlat, left, 2+weigh(c[1]))
				return node
			})
		} else {
			c[0] = paid(payItems, c[0], 1+weigh(c[1]))
		}
	case jp.ASTFilterProjection:
		return e.settled(c[0], func(left jp.ASTNode) jp.ASTNode {
			c[0] = paid(payItems, left, 1+weigh(c[1])+weigh(c[2]))
			return node
		})
	case jp.ASTValueProjection:
		c[0] = paid(memberValues, c[0], 1+weigh(c[1]))
		node.NodeType = jp.ASTProjection
	case jp.ASTComparator:
		if !isScalar(c[0]) && !isScalar(c[1]) {
			c[0] = call(payCompared, c[0])
		}
	case jp.ASTFunctionExpression:
		return payCall(node)
	}
	return node
}

// payCall charges for functions that take an expression. sort_by(list, &key) becomes list |
// ours(@, map(&key, @)), so that each key is computed once.
func payCall(node jp.ASTNode) jp.ASTNode {
	current := jp.ASTNode{NodeType: jp.ASTCurrentNode}
	name, c := node.Value.(string), node.Children
	var ours string
	switch name {
	case "map":
		c[1] = call(payList, c[1], literal("map: argument 2"), literal(1+weigh(c[0])))
		return node
	case "sort_by":
		ours = sortKeys
	case "max_by":
		ours = maxKeys
	case "min_by":
		ours = minKeys
	default:
		return node
	}
	list := call(payList, c[0], literal(name+": argument 1"), literal(4+weigh(c[1])))
	return jp.ASTNode{NodeType: jp.ASTPipe, Children: []jp.ASTNode{list, call(ours, current, call("map", c[1], current))}}
}

// isScalar reports whether a node is written as a string, a number, true, false
// or null.
func isScalar(node jp.ASTNode) bool {
	if node.NodeType != jp.ASTLiteral {
		return false
	}
	if text, ok := node.Value.(string); ok {
		return !strings.ContainsRune(text, markOpen)
	}
	return function.KindOf(node.Value)&(function.Number|function.Boolean|function.Null) != 0
}

func call(name string, with ...jp.ASTNode) jp.ASTNode {
	return jp.ASTNode{NodeType: jp.ASTFunctionExpression, Value: name, Children: with}
}

func paid(name string, list jp.ASTNode, weight int) jp.ASTNode {
	return call(tollName(name, weight), list)
}

func literal(value any) jp.ASTNode { return jp.ASTNode{NodeType: jp.ASTLiteral, Value: value} }

// calls reports whether a prepared tree has a call in it.
func calls(node jp.ASTNode) bool {
	return node.NodeType == jp.ASTFunctionExpression || slices.ContainsFunc(node.Children, calls)
}

// callsVarying reports whether a node calls a function of the clock, of randomness or of the network.
func callsVarying(node jp.ASTNode) bool {
	name, _ := node.Value.(string)
	varying := []string{"random", "time_now", "time_now_utc", "time_since", "is_external_url"}
	return node.NodeType == jp.ASTFunctionExpression && slices.Contains(varying, name) || slices.ContainsFunc(node.Children, callsVarying)
}
