package signature

import (
	"fmt"
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// Tree returns the syntax tree of an expression without holes, a node a line, each below its parent. An error
// is a *jmespath.SyntaxError.
func Tree(expression string) (string, error) {
	ast, err := jp.NewParser().Parse(expression)
	if err != nil {
		return "", &jmespath.SyntaxError{Expression: expression, Err: err}
	}
	var b strings.Builder
	writeNode(&b, ast, 0)
	return b.String(), nil
}

func writeNode(b *strings.Builder, node jp.ASTNode, depth int) {
	b.WriteString(strings.Repeat("  ", depth) + strings.TrimPrefix(node.NodeType.String(), "AST"))
	switch value := node.Value.(type) {
	case nil:
	case string:
		fmt.Fprintf(b, " %q", value)
	case fmt.Stringer: // a comparator
		fmt.Fprintf(b, " %s", strings.TrimPrefix(value.String(), "t"))
	case []*int: // of a slice; an end that is not there
		for _, end := range value {
			if end == nil {
				b.WriteString(" _")
			} else {
				fmt.Fprintf(b, " %d", *end)
			}
		}
	default:
		fmt.Fprintf(b, " %s", jmespath.Text(value))
	}
	b.WriteByte('\n')
	for _, child := range node.Children {
		writeNode(b, child, depth+1)
	}
}
