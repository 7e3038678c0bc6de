package cel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/fieldcheck"
)

// lookAt walks a checked expression.
func lookAt(root ast.Expr) look {
	l := look{root: root}
	l.walk(root, nil)
	return l
}

func (l *look) walk(e ast.Expr, bound names) {
	l.nodes++
	if read, ok := readOf(e, bound); ok {
		l.read(read)
		return
	}
	switch e.Kind() {
	case ast.CallKind:
		l.call(e.AsCall(), fieldcheck.Parts(e), bound)
	case ast.ComprehensionKind:
		l.comprehension(e.AsComprehension(), bound)
	default:
		l.each(fieldcheck.Parts(e), bound)
	}
}

func (l *look) each(all []ast.Expr, bound names) {
	for _, one := range all {
		l.walk(one, bound)
	}
}

func (l *look) read(r Read) {
	if !slices.Contains(l.reads, r) {
		l.reads = append(l.reads, r)
	}
}

func (l *look) call(c ast.CallExpr, parts []ast.Expr, bound names) {
	l.each(parts, bound)
	arguments := make([]Argument, len(parts))
	for i, part := range parts {
		arguments[i] = Argument{expr: part, bound: bound}
	}
	l.calls = append(l.calls, FunctionCall{Function: c.FunctionName(), Arguments: arguments})
}

// comprehension walks an expanded macro such as all() or map(): its names are bound in its body,
// and not in its range.
func (l *look) comprehension(c ast.ComprehensionExpr, bound names) {
	l.walk(c.IterRange(), bound)
	l.walk(c.AccuInit(), bound)
	inner := append(slices.Clone(bound), c.IterVar(), c.AccuVar())
	if c.HasIterVar2() {
		inner = append(inner, c.IterVar2())
	}
	l.walk(c.LoopCondition(), inner)
	l.walk(c.LoopStep(), inner)
	l.walk(c.Result(), append(slices.Clone(bound), c.AccuVar()))
}

// readOf recognises name, name.field and name["field"] of a name that is not bound.
func readOf(e ast.Expr, bound names) (Read, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return Read{Variable: e.AsIdent()}, !bound.has(e.AsIdent())
	case ast.SelectKind:
		sel := e.AsSelect()
		return fieldOf(sel.Operand(), sel.FieldName(), bound)
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			if key := call.Args()[1]; key.Kind() == ast.LiteralKind {
				if text, ok := key.AsLiteral().(types.String); ok {
					return fieldOf(call.Args()[0], string(text), bound)
				}
			}
		}
	}
	return Read{}, false
}

func fieldOf(operand ast.Expr, field string, bound names) (Read, bool) {
	if operand.Kind() != ast.IdentKind || bound.has(operand.AsIdent()) {
		return Read{}, false
	}
	return Read{Variable: operand.AsIdent(), Field: field}, true
}

// checkParts refuses an expression that is too large after macro expansion, or that may have such
// types. It traverses no more than the limit.
func checkParts(root ast.Expr) error {
	waiting := []ast.Expr{root}
	computed := 0
	for seen := 1; len(waiting) > 0; seen++ {
		if seen > maxNodes {
			return fmt.Errorf("the expression has more than %d parts when its macros are written out", maxNodes)
		}
		e := waiting[len(waiting)-1]
		if e.Kind() == ast.MapKind && slices.ContainsFunc(e.AsMap().Entries(), hasComputedKey) {
			computed++
			if computed > maxComputedMaps {
				return fmt.Errorf("the expression has more than %d maps with computed keys: declare a variable for a part of it", maxComputedMaps)
			}
		}
		waiting = append(waiting[:len(waiting)-1], fieldcheck.Parts(e)...)
	}
	return nil
}

func hasComputedKey(entry ast.EntryExpr) bool {
	return entry.AsMapEntry().Key().Kind() != ast.LiteralKind
}

// checkKeys refuses a map type with lists or maps as keys. No map has such keys, and with such
// types a few variables would build a type that is too large to write out.
func checkKeys(is *types.Type) error {
	for i, part := range is.Parameters() {
		if is.Kind() == types.MapKind && i == 0 && len(part.Parameters()) > 0 {
			return errors.New("the keys of a map are texts, numbers or booleans, and no lists and maps")
		}
		if err := checkKeys(part); err != nil {
			return err
		}
	}
	return nil
}
