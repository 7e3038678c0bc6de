// Package podtemplate rewrites CEL expressions about pods for objects with a pod template, as Kyverno's
// rule generation does ("Auto-Gen Rules", 1.19), on the syntax tree instead of the text.
package podtemplate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Rewrite returns an expression about pods for an object with a pod template: what it reads of the
// object's spec and metadata is read of the template, except for its name and namespace. The text
// stays the author's; it is refused where the object is read as a whole.
func Rewrite(env *celgo.Env, expression string, template kyvernocel.Template) (string, error) {
	if len(template) == 0 {
		return expression, nil
	}
	parsed, issues := env.Parse(expression)
	if err := issues.Err(); err != nil {
		return "", err
	}
	tree := parsed.NativeRep()
	r := rewriting{tree: tree, template: template, inserts: map[int32]string{}, done: map[int64]bool{}}
	ast.PreOrderVisit(tree.Expr(), ast.NewExprVisitor(r.visit))
	if err := errors.Join(r.errs...); err != nil {
		return "", err
	}
	return inserted(expression, r.inserts), nil
}

// rewriting collects the insertions into an expression.
type rewriting struct {
	tree     *ast.AST
	template kyvernocel.Template
	// inserts are texts by the offset, in characters, after which they come.
	inserts map[int32]string
	// done are the identifiers that stand in a selection.
	done map[int64]bool
	errs []error
}

// isObject reports whether an expression is the object of the request, old or new.
func isObject(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && (e.AsIdent() == kyvernocel.ObjectName || e.AsIdent() == kyvernocel.OldObjectName)
}

// selected returns the operand and the field of a selection, a.b or a.?b.
func selected(e ast.Expr) (operand ast.Expr, field string, optional, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), false, true
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.OptSelect || len(call.Args()) != 2 || call.Args()[1].Kind() != ast.LiteralKind {
			return nil, "", false, false
		}
		name, isText := call.Args()[1].AsLiteral().(types.String)
		return call.Args()[0], string(name), true, isText
	}
	return nil, "", false, false
}

// visit sees an expression before its parts.
func (r *rewriting) visit(e ast.Expr) {
	if e.Kind() == ast.ComprehensionKind {
		loop := e.AsComprehension()
		for _, name := range []string{loop.IterVar(), loop.IterVar2(), loop.AccuVar()} {
			if name == kyvernocel.ObjectName || name == kyvernocel.OldObjectName {
				r.errs = append(r.errs, fmt.Errorf("a variable of a loop is named %s", name))
			}
		}
	}
	if call := e; call.Kind() == ast.CallKind && isComparison(call.AsCall()) {
		for _, arg := range call.AsCall().Args() {
			r.done[arg.ID()] = r.done[arg.ID()] || isObject(arg) // there is an object or none, of either kind
		}
	}
	operand, field, optional, ok := selected(e)
	switch {
	case ok && isObject(operand):
		r.done[operand.ID()] = true
		r.field(e, operand, field, optional)
	case ok && r.isOwnMetadata(operand, field):
		inner, _, _, _ := selected(operand)
		r.done[operand.ID()], r.done[inner.ID()] = true, true
	case isObject(e) && !r.done[e.ID()]:
		r.errs = append(r.errs, fmt.Errorf("%s is read as a whole, and a pod is only a part of it here", e.AsIdent()))
	}
}

// isComparison reports whether a call compares with null.
func isComparison(call ast.CallExpr) bool {
	return (call.FunctionName() == operators.Equals || call.FunctionName() == operators.NotEquals) &&
		slices.ContainsFunc(call.Args(), func(arg ast.Expr) bool {
			return arg.Kind() == ast.LiteralKind && arg.AsLiteral() == types.NullValue
		})
}

// isOwnMetadata reports whether a field of the object's metadata is the object's own.
func (r *rewriting) isOwnMetadata(operand ast.Expr, field string) bool {
	inner, name, _, ok := selected(operand)
	return ok && isObject(inner) && name == "metadata" && slices.Contains([]string{"name", "namespace", "generateName"}, field)
}

// field moves a read of a member of the object into the template. Members other than spec and
// metadata are the object's own.
func (r *rewriting) field(e, operand ast.Expr, name string, optional bool) {
	if r.done[e.ID()] || name != "spec" && name != "metadata" {
		return
	}
	at, ok := r.tree.SourceInfo().GetOffsetRange(operand.ID())
	if !ok {
		r.errs = append(r.errs, fmt.Errorf("the place of %s is not known", operand.AsIdent()))
		return
	}
	step := "."
	if optional {
		step = ".?"
	}
	r.inserts[at.Start+int32(len(operand.AsIdent()))] = step + strings.Join(r.template, step) //nolint:gosec // oldObject is short
}

// inserted returns a text with others inserted at offsets in characters.
func inserted(text string, inserts map[int32]string) string {
	var out strings.Builder
	n := int32(0)
	for _, r := range text {
		out.WriteString(inserts[n])
		out.WriteRune(r)
		n++
	}
	out.WriteString(inserts[n])
	return out.String()
}
