// Package alias reads request.object and request.oldObject in CEL (cel-spec 0.25), as policies for
// Kyverno have them, as the variables object and oldObject, or as variables of these names with a
// prefix. The fields that an expression reads, and what is known of them, are then those of the
// one variable.
package alias

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/fieldcheck"
)

const request = "request"

// Replace replaces the aliases in a parsed expression by variables with a prefix, unless a loop has a
// variable of its own that is named request.
func Replace(e ast.Expr, prefix string) {
	if !binds(e) {
		replace(e, prefix)
	}
}

func replace(e ast.Expr, prefix string) {
	made := ast.NewExprFactory()
	name, form := aliasOf(e)
	name = prefix + name
	switch form {
	case none:
		for _, part := range fieldcheck.Parts(e) {
			replace(part, prefix)
		}
	case plain:
		e.SetKindCase(made.NewIdent(e.ID(), name))
	case tested:
		null := made.NewLiteral(added(e, 2), types.NullValue)
		e.SetKindCase(made.NewCall(e.ID(), operators.NotEquals, made.NewIdent(added(e, 1), name), null))
	case optional:
		e.SetKindCase(made.NewCall(e.ID(), "optional.ofNonZeroValue", made.NewIdent(added(e, 1), name)))
	}
}

// form is how an alias is written.
type form int

const (
	none     form = iota
	plain         // request.object
	tested        // has(request.object)
	optional      // request.?object
)

// aliasOf returns the variable of an alias.
func aliasOf(e ast.Expr) (string, form) {
	var of ast.Expr
	var name string
	is := plain
	switch {
	case e.Kind() == ast.SelectKind:
		of, name = e.AsSelect().Operand(), e.AsSelect().FieldName()
		if e.AsSelect().IsTestOnly() {
			is = tested
		}
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.OptSelect && len(e.AsCall().Args()) == 2:
		of, is = e.AsCall().Args()[0], optional
		if field := e.AsCall().Args()[1]; field.Kind() == ast.LiteralKind {
			name, _ = field.AsLiteral().Value().(string)
		}
	default:
		return "", none
	}
	if name != "object" && name != "oldObject" || of.Kind() != ast.IdentKind || of.AsIdent() != request {
		return "", none
	}
	return name, is
}

// added is the number of an added part. Those of an expression are small.
func added(e ast.Expr, n int64) int64 { return e.ID() | n<<32 }

// binds reports whether a loop in an expression has a variable named request.
func binds(e ast.Expr) bool {
	if e.Kind() == ast.ComprehensionKind {
		if loop := e.AsComprehension(); loop.IterVar() == request || loop.IterVar2() == request || loop.AccuVar() == request {
			return true
		}
	}
	for _, part := range fieldcheck.Parts(e) {
		if binds(part) {
			return true
		}
	}
	return false
}
