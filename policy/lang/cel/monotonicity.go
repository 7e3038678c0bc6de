package cel

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// monotonicity is how an expression depends on its counts. Bools go from false over an error to
// true, the order in which && is the minimum and || the maximum; lists follow their items. A
// monotonic expression with the same result for all counts at their lower end and for all at
// their upper end has that result in between, however many counts there are.
type monotonicity int

const (
	steady monotonicity = iota // the same, whatever is counted
	rising
	falling
	unsteady // or unknown
)

func (t monotonicity) flip() monotonicity {
	switch t {
	case rising:
		return falling
	case falling:
		return rising
	}
	return t
}

// with is the trend of a combination of both.
func (t monotonicity) with(other monotonicity) monotonicity {
	switch {
	case t == other, other == steady:
		return t
	case t == steady:
		return other
	}
	return unsteady
}

// tracer finds the trend of an expression of a scope.
type tracer struct {
	scope *Scope
	bound map[string]monotonicity
}

func (s *Scope) trendOf(root ast.Expr) monotonicity { return tracer{scope: s}.of(root) }

// bind returns a tracer for where names have the given trends, too.
func (t tracer) bind(names map[string]monotonicity) tracer {
	bound := maps.Clone(t.bound)
	if bound == nil {
		bound = map[string]monotonicity{}
	}
	maps.Copy(bound, names)
	return tracer{scope: t.scope, bound: bound}
}

func (t tracer) of(e ast.Expr) monotonicity {
	switch e.Kind() {
	case ast.LiteralKind:
		return steady
	case ast.IdentKind:
		return t.ident(e.AsIdent())
	case ast.SelectKind:
		return t.selection(e.AsSelect())
	case ast.CallKind:
		return t.call(e.AsCall())
	case ast.ListKind:
		return t.together(e.AsList().Elements())
	case ast.MapKind:
		whole := steady
		for _, entry := range e.AsMap().Entries() {
			whole = whole.with(t.all(entry.AsMapEntry().Key(), entry.AsMapEntry().Value()))
		}
		return whole
	case ast.ComprehensionKind:
		return t.comprehension(e.AsComprehension())
	}
	return unsteady
}

// together is the trend of a combination of the parts.
func (t tracer) together(parts []ast.Expr) monotonicity {
	whole := steady
	for _, part := range parts {
		whole = whole.with(t.of(part))
	}
	return whole
}

// all is steady if all parts are, and otherwise nothing is known.
func (t tracer) all(parts ...ast.Expr) monotonicity {
	for _, part := range parts {
		if t.of(part) != steady {
			return unsteady
		}
	}
	return steady
}

func (t tracer) ident(name string) monotonicity {
	if is, ok := t.bound[name]; ok {
		return is
	}
	if name != variablesName {
		return steady
	}
	for _, p := range t.scope.variables {
		if p.monotonicity != steady {
			return unsteady
		}
	}
	return steady
}

func (t tracer) selection(s ast.SelectExpr) monotonicity {
	operand := s.Operand()
	if _, hidden := t.bound[variablesName]; !hidden && operand.Kind() == ast.IdentKind && operand.AsIdent() == variablesName {
		if i, ok := t.scope.index[s.FieldName()]; ok && !s.IsTestOnly() {
			return t.scope.variables[i].monotonicity
		}
		return steady
	}
	return t.all(operand)
}

func (t tracer) call(c ast.CallExpr) monotonicity {
	arguments := c.Args()
	if c.IsMemberFunction() {
		arguments = append([]ast.Expr{c.Target()}, arguments...)
	}
	switch function := c.FunctionName(); function {
	case operators.LogicalAnd, operators.LogicalOr, operators.Add, "sum":
		return t.together(arguments)
	case operators.LogicalNot:
		return t.of(arguments[0]).flip()
	case operators.Greater, operators.GreaterEquals, operators.Subtract:
		if len(arguments) == 2 {
			return t.of(arguments[0]).with(t.of(arguments[1]).flip())
		}
	case operators.Less, operators.LessEquals:
		return t.of(arguments[0]).flip().with(t.of(arguments[1]))
	case operators.Conditional:
		if t.of(arguments[0]) == steady {
			return t.together(arguments[1:])
		}
		return unsteady
	default:
		if _, own := ownFunctions()[function]; own {
			return unsteady // another text in each world
		}
		if _, late := t.scope.env.dynamic[function]; late {
			return rising.with(t.all(arguments...))
		}
	}
	return t.all(arguments...)
}

// comprehension traces the accumulator.
func (t tracer) comprehension(c ast.ComprehensionExpr) monotonicity {
	items := t.of(c.IterRange())
	names := map[string]monotonicity{c.IterVar(): items}
	if c.HasIterVar2() {
		names = map[string]monotonicity{c.IterVar(): steady, c.IterVar2(): items}
		if items != steady {
			return unsteady // a map's second name is the value, a list's first the place
		}
	}
	start := t.of(c.AccuInit())
	with := func(accumulated monotonicity) tracer {
		inner := maps.Clone(names)
		inner[c.AccuVar()] = accumulated
		return t.bind(inner)
	}
	once := start.with(with(start).of(c.LoopStep()))
	if once != start && once != unsteady && !accumulates(c) && with(once).of(c.LoopStep()) != once {
		return unsteady
	}
	if !stopsWhenDecided(c) && with(once).of(c.LoopCondition()) != steady {
		return unsteady
	}
	return t.bind(map[string]monotonicity{c.AccuVar(): once}).of(c.Result())
}

// accumulates reports whether a step of a loop only adds to the accumulator, so that another step
// has the same direction.
func accumulates(c ast.ComprehensionExpr) bool {
	step := c.LoopStep()
	if step.Kind() != ast.CallKind {
		return false
	}
	switch step.AsCall().FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.Add:
		return slices.ContainsFunc(step.AsCall().Args(), func(e ast.Expr) bool { return isAccumulator(c, e) })
	}
	return false
}

func isAccumulator(c ast.ComprehensionExpr, e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == c.AccuVar()
}

// stopsWhenDecided reports whether the loop ends early only once the accumulator can no longer
// change, as the loops of all() and exists() do.
func stopsWhenDecided(c ast.ComprehensionExpr) bool {
	condition := c.LoopCondition()
	if !accumulates(c) || condition.Kind() != ast.CallKind || condition.AsCall().FunctionName() != operators.NotStrictlyFalse {
		return false
	}
	goes := condition.AsCall().Args()[0]
	switch c.LoopStep().AsCall().FunctionName() {
	case operators.LogicalAnd:
		return isAccumulator(c, goes)
	case operators.LogicalOr:
		return goes.Kind() == ast.CallKind && goes.AsCall().FunctionName() == operators.LogicalNot && isAccumulator(c, goes.AsCall().Args()[0])
	}
	return false
}
