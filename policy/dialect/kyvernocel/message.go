package kyvernocel

import (
	"context"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// MessageOf returns the text of a messageExpression, which is nil for none. One that fails, that
// is longer than MaxMessage or that has nothing but space yields no message, as in Kubernetes.
func MessageOf(ctx context.Context, expression *cel.Program, activation *cel.Activation) string {
	if expression == nil {
		return ""
	}
	text, err := expression.Text(ctx, activation)
	if err != nil || len(text) > MaxMessage {
		return ""
	}
	return strings.TrimSpace(text)
}
