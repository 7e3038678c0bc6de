package cue

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
)

// packages are those of CUE's library that may be imported: they compute, and
// neither reach out nor make much of little.
func packages() []string {
	return []string{
		"encoding/base64", "encoding/hex", "encoding/json", "encoding/yaml", "list", "math", "math/bits",
		"regexp", "strconv", "strings", "struct", "time",
	}
}

// growing are functions that make any amount of data of a number.
func growing() []string { return []string{"Repeat", "Range"} }

// check looks at a policy before it is evaluated at all, and notes what its
// evaluation costs.
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
	if c.loops, err = declared.loopsOf(file); err != nil {
		return err
	}
	c.declared, c.hides = declared, hides(file)
	c.widest, c.splits = widestOf(file), splits(file)
	var errs []error
	for i := range file.ImportSpecs() {
		name, err := strconv.Unquote(i.Path.Value)
		if err != nil || !slices.Contains(packages(), name) {
			errs = append(errs, fmt.Errorf("the package %s cannot be imported: want one of %s", i.Path.Value, strings.Join(packages(), ", ")))
		}
	}
	said := false
	for _, d := range file.Decls {
		switch d.(type) {
		case *ast.Package, *ast.ImportDecl, *ast.CommentGroup:
		default:
			said = true
		}
		errs = append(errs, checkNode(d))
		if len(options.Absent) > 0 {
			errs = append(errs, speaks(d, options))
		}
	}
	if len(options.Members) > 0 {
		errs = append(errs, declared.useless(file, options.Members))
	}
	if !said {
		errs = append(errs, errors.New("the policy says nothing, and so would hold for everything"))
	}
	return errors.Join(errs...)
}

// checkNode finds what could make any amount of data.
func checkNode(node ast.Node) (err error) {
	ast.Walk(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if label, ok := n.Sel.(*ast.Ident); ok && slices.Contains(growing(), label.Name) {
				err = fmt.Errorf("%s: the function %s makes any amount of data, and cannot be used", n.Pos(), label.Name)
			}
		case *ast.BinaryExpr:
			if n.Op.String() == "*" && (grows(n.X) || grows(n.Y)) {
				err = fmt.Errorf("%s: a text or list times a number makes any amount of data, and cannot be used", n.Pos())
			}
		}
		return err == nil
	}, nil)
	return err
}

func grows(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ListLit:
		return true
	case *ast.BasicLit:
		return strings.HasPrefix(e.Value, `"`) || strings.HasPrefix(e.Value, `'`) || strings.HasPrefix(e.Value, "#")
	case *ast.ParenExpr:
		return grows(e.X)
	}
	return false
}

// speaks refuses what could be about an absent member. Below the members that are
// there any name may stand; beside them no field may have that name, nor one that
// is not written out. Definitions and hidden fields are looked through, for they
// may be put beside.
func speaks(d ast.Decl, options Options) (err error) {
	ast.Walk(d, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok || err != nil {
			return err == nil
		}
		name, _, open := ast.LabelName(field.Label)
		ident, isIdent := field.Label.(*ast.Ident)
		switch {
		case open != nil:
			err = fmt.Errorf("%s: a field whose name is not written out may be about %s, which is not handed on: write it below a field of its own", field.Pos(), strings.Join(options.Absent, " or "))
		case isIdent && strings.HasPrefix(ident.Name, "_"), isIdent && strings.HasPrefix(ident.Name, "#"):
			return true
		case slices.Contains(options.Absent, name):
			err = fmt.Errorf("%s: %s is not handed on: %s", field.Pos(), name, options.AbsentWhy)
		}
		return false
	}, nil)
	return err
}

// useless finds a field at the top that says nothing of the data and that nothing
// uses.
func (c *cost) useless(file *ast.File, members []string) error {
	inUse := map[string]bool{}
	used(file, func(name string) { inUse[name] = true })
	for _, d := range file.Decls {
		field, ok := d.(*ast.Field)
		if !ok {
			continue
		}
		name, _, err := ast.LabelName(field.Label)
		if err != nil || strings.HasPrefix(name, "_") || strings.HasPrefix(name, "#") || slices.Contains(members, name) || inUse[name] {
			continue
		}
		if !slices.ContainsFunc(members, func(member string) bool { return c.reaches(name, member) }) {
			return fmt.Errorf("%s: %s says nothing of the data, whose members are %s: is it misspelt?", field.Pos(), name, strings.Join(members, ", "))
		}
	}
	return nil
}
