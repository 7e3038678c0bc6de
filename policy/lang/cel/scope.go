package cel

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/alias"
)

// Scope is where the expressions of one document are compiled. Variables are
// declared in their order, and an expression reads those declared before it. While
// it is added to, a Scope is for one goroutine; then it is safe for concurrent use.
type Scope struct {
	env       *Env
	cel       *celgo.Env
	variables []*Program
	index     map[string]int
	fields    map[string]*types.FieldType
}

// NewScope makes an empty scope.
func (e *Env) NewScope() (*Scope, error) {
	s := &Scope{env: e, index: map[string]int{}, fields: map[string]*types.FieldType{}}
	objects := maps.Clone(e.objects)
	objects[variablesType] = s.fields
	extended, err := e.base.Extend(celgo.CustomTypeAdapter(adapter{e.base.CELTypeAdapter()}),
		celgo.CustomTypeProvider(&provider{Provider: e.base.CELTypeProvider(), objects: objects, patches: e.options.Patches}))
	if err != nil {
		return nil, fmt.Errorf("make a scope of the CEL environment: %w", err)
	}
	s.cel = extended
	return s, nil
}

// Declare compiles a variable, which later expressions read as variables.name; it
// is evaluated when it is first read, once in an Activation. The path is that of
// the expression's field, for errors, which are *CompileError.
func (s *Scope) Declare(path, name, expression string) error {
	if ok, _ := regexp.MatchString(`^[A-Za-z_][A-Za-z0-9_]*$`, name); !ok {
		return &CompileError{Path: path, Err: fmt.Errorf("%q is no name of a variable: use letters, digits and underscores, and begin with no digit", name)}
	}
	if _, taken := s.index[name]; taken {
		return &CompileError{Path: path, Err: fmt.Errorf("the variable %s is declared twice", name)}
	}
	if len(s.variables) >= maxVariables {
		return &CompileError{Path: path, Err: fmt.Errorf("there are more than %d variables", maxVariables)}
	}
	p, err := s.Compile(path, expression)
	if err != nil {
		return err
	}
	if err := checkKeys(p.Type()); err != nil {
		return &CompileError{Path: path, Err: err}
	}
	s.index[name] = len(s.variables)
	s.variables = append(s.variables, p)
	s.fields[name] = variableField(name, p.Type())
	return nil
}

// Variables returns the programs of the variables, in their order.
func (s *Scope) Variables() []*Program { return slices.Clone(s.variables) }

// Compile compiles an expression with a value of exactly one of the given types; without any, of
// any type. Errors are *CompileError.
func (s *Scope) Compile(path, expression string, wants ...*celgo.Type) (*Program, error) {
	p, err := s.compile(path, expression, wants)
	if err != nil {
		return nil, &CompileError{Path: path, Err: err}
	}
	return p, nil
}

func (s *Scope) compile(path, expression string, wants []*celgo.Type) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("the CEL compiler failed: %v", r)
		}
	}()
	switch {
	case expression == "":
		return nil, errors.New("the expression is empty")
	case len(expression) > maxExpression:
		return nil, fmt.Errorf("the expression of %d bytes exceeds the bound of %d", len(expression), maxExpression)
	case strings.Count(expression, "optMap")+strings.Count(expression, "optFlatMap") > maxCopying:
		return nil, fmt.Errorf("optMap() and optFlatMap() stand more than %d times in one expression: declare a variable for a part of it", maxCopying)
	case !utf8.ValidString(expression):
		return nil, errors.New("the expression is not UTF-8")
	}
	ast, err := s.check(expression)
	if err != nil {
		return nil, err
	}
	if err := wanted(ast.OutputType(), wants); err != nil {
		return nil, err
	}
	prog, err := s.cel.Program(ast, s.env.programOptions(ast)...)
	if err != nil {
		return nil, err
	}
	p = &Program{path: path, expression: expression, scope: s, ast: ast, prog: prog, output: ast.OutputType(), look: lookAt(ast.NativeRep().Expr())}
	p.monotonicity = s.trendOf(p.look.root)
	p.step = 1 + uint64(p.look.nodes)/stepNodes
	return p, nil
}

// check parses an expression and checks its types.
func (s *Scope) check(expression string) (*celgo.Ast, error) {
	parsed, issues := s.cel.Parse(expression)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if err := checkParts(parsed.NativeRep().Expr()); err != nil {
		return nil, err
	}
	if s.env.options.RequestObjects {
		alias.Replace(parsed.NativeRep().Expr(), s.env.options.RequestPrefix)
	}
	checked, issues := s.cel.Check(parsed)
	return checked, issues.Err()
}

func wanted(is *celgo.Type, wants []*celgo.Type) error {
	if len(wants) == 0 {
		return nil
	}
	names := ""
	for i, want := range wants {
		if is.IsExactType(want) {
			return nil
		}
		if i > 0 {
			names += " or "
		}
		names += want.String()
	}
	return fmt.Errorf("the value is of type %s, and has to be %s", is, names)
}
