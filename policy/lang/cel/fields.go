package cel

import (
	"github.com/google/cel-go/common/ast"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/fieldcheck"
)

// Schema is the type of a JSON value, as far as it is known. A nil Schema matches any value.
// Implementations are comparable.
type Schema = fieldcheck.Schema

// ValueKind is the kind of a JSON value, of which values of another kind are never equal.
type ValueKind = fieldcheck.Kind

// The kinds of values. An AnyValue may be of any kind, as a quantity is a number or a text.
const (
	AnyValue     = fieldcheck.Unknown
	TextValue    = fieldcheck.Text
	NumberValue  = fieldcheck.Number
	BooleanValue = fieldcheck.Boolean
	ListValue    = fieldcheck.List
	ObjectValue  = fieldcheck.Object
)

// Undefined returns an error for a program that reads a field which none of the schemas has, or
// compares values that are never equal by all of them; nil for none. Roots are the variables that
// hold an object of one of them.
func (p *Program) Undefined(roots []string, schemas []Schema) error {
	err := fieldcheck.Check(fieldcheck.Expression{
		Root: p.look.root, Objects: roots, Variables: variablesName,
		Variable: func(name string) (ast.Expr, bool) {
			i, declared := p.scope.index[name]
			if !declared {
				return nil, false
			}
			return p.scope.variables[i].look.root, true
		},
	}, schemas)
	if err != nil {
		return &CompileError{Path: p.path, Err: err}
	}
	return nil
}
