package jmespath

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// checkOperations refuses comparisons of the request's operation with a text that is none: the
// result is the same for every request. A default of the operation is one of its values.
func (e *Engine) checkOperations(node jp.ASTNode) error {
	var err error
	c := node.Children
	switch node.NodeType {
	case jp.ASTComparator:
		if e.comparators[node.Value] == "" {
			err = cmp.Or(neverOperation(c[0], c[1]), neverOperation(c[1], c[0]))
		}
	case jp.ASTFunctionExpression:
		if node.Value == "contains" && len(c) > 1 {
			err = neverOperation(c[1], c[0])
		}
	case jp.ASTSubexpression, jp.ASTPipe, jp.ASTIndexExpression, jp.ASTProjection, jp.ASTValueProjection, jp.ASTFilterProjection:
		c = c[:1] // the others are evaluated on a part of the data
	case jp.ASTExpRef:
		c = nil
	}
	for _, child := range c {
		err = cmp.Or(err, e.checkOperations(child))
	}
	return err
}

// neverOperation returns an error if operation reads the request's operation and value is, or
// lists, a text that no operation is.
func neverOperation(operation, value jp.ASTNode) error {
	known := builtin.Operations()
	if operation.NodeType == jp.ASTOrExpression {
		fallback, isText := operation.Children[1].Value.(string)
		if operation.Children[1].NodeType != jp.ASTLiteral || !isText {
			return nil
		}
		known, operation = append(known, fallback), operation.Children[0]
	}
	if !slices.Equal(plainPath(operation), []string{"request", "operation"}) {
		return nil
	}
	values := []jp.ASTNode{value}
	if value.NodeType == jp.ASTMultiSelectList {
		values = value.Children
	}
	for _, value := range values {
		list, isList := value.Value.([]any)
		if !isList && value.NodeType == jp.ASTLiteral {
			list = []any{value.Value}
		}
		for _, text := range textsOf(list) {
			if !strings.ContainsRune(text, markOpen) && !slices.Contains(known, text) {
				return fmt.Errorf("request.operation is never %q: it is one of %s", text, strings.Join(known, ", "))
			}
		}
	}
	return nil
}
