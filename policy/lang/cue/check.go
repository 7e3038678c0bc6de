package cue

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

// packages are those of CUE's library that may be imported: they compute, and
// neither connect nor turn a small input into a huge output.
func packages() []string {
	return []string{
		"encoding/base64", "encoding/hex", "encoding/json", "encoding/yaml", "list", "math", "math/bits",
		"regexp", "strconv", "strings", "struct", "time",
	}
}

// growing are functions that make any amount of data of a number.
func growing() []string { return []string{"Repeat", "Range"} }

// check validates a policy before its first evaluation, and records the cost of an
// evaluation.
func (c *Condition) check(options Options) error {
	if strings.TrimSpace(c.text) == "" {
		return errors.New("the policy is empty, and so would hold for everything")
	}
	if brackets(c.text) > maxBrackets {
		return fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	file, err := parser.ParseFile("policy.cue", c.text)
	if err != nil {
		return words(err)
	}
	if depth(file) > maxDepth {
		return fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	declared := declarations(file)
	c.loops, err = declared.loopsOf(file)
	if err != nil {
		return err
	}
	c.declared, c.hides = declared, hides(file)
	c.widest, c.splits = widestOf(file), splits(file)
	c.names = namesOf(file)
	var errs []error
	for i := range file.ImportSpecs() {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil || !slices.Contains(packages(), name) {
			errs = append(errs, fmt.Errorf("the package %s cannot be imported: want one of %s", i.Path.Value, strings.Join(packages(), ", ")))
		}
	}
	errs = append(errs, declared.checkExpressions(file))
	said := false
	for _, d := range file.Decls {
		said = said || constrains(d)
		errs = append(errs, declared.checkNode(d))
		if len(options.Absent) > 0 {
			errs = append(errs, checkReferences(d, options))
		}
	}
	if len(options.Members) > 0 {
		errs = append(errs, declared.useless(file, options.Members))
	}
	if !said {
		errs = append(errs, errors.New("the policy has no constraint, and so would pass everything"))
	}
	return errors.Join(errs...)
}

// namesOf returns the labels and identifiers of a policy.
func namesOf(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Walk(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if name, _, err := ast.LabelName(n.Label); err == nil {
				names[name] = true
			}
		case *ast.Ident:
			names[n.Name] = true
		case *ast.SelectorExpr:
			if name, _, err := ast.LabelName(n.Sel); err == nil {
				names[name] = true
			}
		}
		return true
	}, nil)
	return names
}

// constrains reports whether a declaration requires anything of the data. A definition, a hidden
// field or a name alone requires nothing until a field refers to it.
func constrains(d ast.Decl) bool {
	switch d := d.(type) {
	case *ast.Package, *ast.ImportDecl, *ast.CommentGroup, *ast.LetClause, *ast.Ellipsis, *ast.Attribute:
		return false
	case *ast.Field:
		name, isIdentifier, _ := ast.LabelName(d.Label)
		return !isIdentifier || !strings.HasPrefix(name, "#") && !strings.HasPrefix(name, "_")
	case *ast.EmbedDecl:
		switch e := d.Expr.(type) {
		case *ast.Ident:
			return e.Name != "_"
		case *ast.StructLit:
			return slices.ContainsFunc(e.Elts, constrains)
		}
	}
	return true
}

// checkNode finds operations that could produce unbounded data.
func (c *cost) checkNode(node ast.Node) (err error) {
	ast.Walk(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if name, _, _ := ast.LabelName(n.Sel); slices.Contains(growing(), name) {
				err = fmt.Errorf("%s: the function %s makes any amount of data, and cannot be used", n.Pos(), name)
			}
		case *ast.BinaryExpr:
			if n.Op.String() == "*" && (c.grows(n.X, nil) || c.grows(n.Y, nil)) {
				err = fmt.Errorf("%s: a text or list times a number makes any amount of data, and cannot be used", n.Pos())
			}
		}
		return err == nil
	}, nil)
	return err
}

// grows reports whether an operand may be a text or a list, as far as the policy
// determines it; through are the names that led to it.
func (c *cost) grows(e ast.Expr, through []string) bool {
	switch e := e.(type) {
	case *ast.ListLit, *ast.Interpolation:
		return true
	case *ast.BasicLit:
		return strings.HasPrefix(e.Value, `"`) || strings.HasPrefix(e.Value, `'`) || strings.HasPrefix(e.Value, "#")
	case *ast.ParenExpr:
		return c.grows(e.X, through)
	case *ast.UnaryExpr:
		return c.grows(e.X, through)
	case *ast.BinaryExpr:
		return c.grows(e.X, through) || c.grows(e.Y, through)
	case *ast.Ident:
		return c.growsByName(e.Name, through)
	case *ast.SelectorExpr:
		name, _, _ := ast.LabelName(e.Sel)
		return c.growsByName(name, through)
	}
	return false
}

func (c *cost) growsByName(name string, through []string) bool {
	if slices.Contains(through, name) {
		return false
	}
	for _, path := range c.byName[name] {
		if slices.ContainsFunc(c.byPath[path], func(value ast.Expr) bool { return c.grows(value, append(through, name)) }) {
			return true
		}
	}
	return false
}

// checkReferences refuses references to absent members. Below the present members any name is
// allowed; next to them no field may have an absent name, nor a computed one. Definitions
// and hidden fields are searched, since they may be unified at that level.
func checkReferences(d ast.Decl, options Options) (err error) {
	ast.Walk(d, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok || err != nil {
			return err == nil
		}
		name, _, open := ast.LabelName(field.Label)
		switch {
		case open != nil:
			err = fmt.Errorf("%s: a field with a computed name may be %s, which is not available: write it below a field of its own",
				field.Pos(), strings.Join(options.Absent, " or "))
		case isHidden(field.Label):
			return true
		case slices.Contains(options.Absent, name):
			err = fmt.Errorf("%s: %s is not available: %s", field.Pos(), name, options.AbsentWhy)
		}
		return false
	}, nil)
	return err
}

// isHidden reports whether a label is that of a hidden field or of a definition.
func isHidden(label ast.Label) bool {
	name, isIdent, _ := ast.LabelName(label)
	return isIdent && (strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#"))
}

// useless finds a field at the top that neither constrains the data nor is used. An
// optional one that is not in the data never exists.
func (c *cost) useless(file *ast.File, members []string) error {
	inUse := map[string]bool{}
	used(file, func(name string) { inUse[name] = true })
	for _, d := range file.Decls {
		field, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		name, _, err := ast.LabelName(field.Label)
		if err != nil || isHidden(field.Label) || slices.Contains(members, name) || inUse[name] {
			continue
		}
		if field.Constraint == token.OPTION || !slices.ContainsFunc(members, func(member string) bool { return c.reaches(name, member, used) }) {
			return fmt.Errorf("%s: %s constrains no member of the data (%s): is it misspelt?", field.Pos(), name, strings.Join(members, ", "))
		}
	}
	return nil
}
