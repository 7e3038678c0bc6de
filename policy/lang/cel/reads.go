package cel

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Read is a possible read of a declared variable.
type Read struct {
	Variable string
	// Field is the first field or constant key that is read, and empty when the
	// variable is used as a whole, or with a key that is computed.
	Field string
}

// FunctionCall is one place in a document's expressions that calls a function.
type FunctionCall struct {
	Function string
	// Arguments are as written; a receiver comes first.
	Arguments []Argument
}

// Argument is the expression of an argument.
type Argument struct {
	scope *Scope
	expr  ast.Expr
	bound names
}

// look is the result of the static analysis of an expression.
type look struct {
	reads []Read
	calls []FunctionCall
	root  ast.Expr
	nodes int
}

type names []string

func (n names) has(name string) bool {
	for _, one := range n {
		if one == name {
			return true
		}
	}
	return false
}

// Reads returns the possible reads of the expression, directly and through its variables, each
// once: a superset of the reads of an evaluation. Names that the expression binds itself are not
// among them.
func (p *Program) Reads() []Read {
	var reads []Read
	seen := map[Read]bool{}
	p.closure(func(each *Program) {
		for _, read := range each.look.reads {
			if !seen[read] {
				seen[read] = true
				reads = append(reads, read)
			}
		}
	})
	return reads
}

// Calls returns the places where the expression, or a variable that it may read,
// calls the function.
func (p *Program) Calls(function string) []FunctionCall {
	var calls []FunctionCall
	p.closure(func(each *Program) {
		for _, call := range each.look.calls {
			if call.Function != function {
				continue
			}
			arguments := make([]Argument, len(call.Arguments))
			for i, argument := range call.Arguments {
				arguments[i] = argument
				arguments[i].scope = p.scope
			}
			calls = append(calls, FunctionCall{Function: function, Arguments: arguments})
		}
	})
	return calls
}

// closure visits the program, and the variables that it may read, each once.
func (p *Program) closure(visit func(*Program)) {
	seen := map[*Program]bool{}
	var follow func(*Program)
	follow = func(each *Program) {
		if seen[each] {
			return
		}
		seen[each] = true
		visit(each)
		for _, read := range each.look.reads {
			if read.Variable != variablesName {
				continue
			}
			for name, i := range p.scope.index {
				if read.Field == name || read.Field == "" {
					follow(p.scope.variables[i])
				}
			}
		}
	}
	follow(p)
}

// Fields returns the fields of a declared variable that may form the argument, as in attestors.a,
// attestors["a"], [attestors.a, attestors.b], their sum, either of two, or a variable that is one
// of these. Known is false for any other form of argument: the fields are then unknown.
func (a Argument) Fields(variable string) (fields []string, known bool) {
	r := fieldReading{scope: a.scope, variable: variable, followed: map[int]bool{}}
	if !r.read(a.expr, a.bound) {
		return nil, false
	}
	return r.fields, true
}

// fieldReading collects the fields of a variable, and follows each variable of the document once.
type fieldReading struct {
	scope    *Scope
	variable string
	followed map[int]bool
	fields   names
}

func (r *fieldReading) read(e ast.Expr, bound names) bool {
	if read, ok := readOf(e, bound); ok {
		i, declared := r.scope.index[read.Field]
		switch {
		case read.Field == "":
			return false
		case read.Variable == r.variable:
			if !r.fields.has(read.Field) {
				r.fields = append(r.fields, read.Field)
			}
			return true
		case read.Variable != variablesName || !declared:
			return false
		case r.followed[i]:
			return true
		}
		r.followed[i] = true
		return r.read(r.scope.variables[i].look.root, nil)
	}
	switch e.Kind() {
	case ast.ListKind:
		return r.all(e.AsList().Elements(), bound)
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.Add:
			return r.all(call.Args(), bound)
		case operators.Conditional:
			return r.all(call.Args()[1:], bound)
		}
	}
	return false
}

func (r *fieldReading) all(parts []ast.Expr, bound names) bool {
	for _, part := range parts {
		if !r.read(part, bound) {
			return false
		}
	}
	return true
}

// Constant returns the text of an argument that is a string literal.
func (a Argument) Constant() (text string, ok bool) {
	if a.expr.Kind() != ast.LiteralKind {
		return "", false
	}
	literal, ok := a.expr.AsLiteral().(types.String)
	return string(literal), ok
}
