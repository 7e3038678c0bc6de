package cue

import (
	"fmt"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// CUE cannot be interrupted, so operations without a time bound are found before the
// evaluation. The bounds are far above real policies and far below a second.
const (
	// maxDepth bounds how deep a policy and its data are nested.
	maxDepth = 100
	// maxBrackets bounds the same before parsing, which takes long for very many; it leaves
	// space for those in texts.
	maxBrackets = 500
	// maxAlternatives bounds the combinations of alternatives (a | b) for one field;
	// the evaluator tries them all.
	maxAlternatives = 128
)

// cost indexes the declarations of a policy by their names and by their paths.
type cost struct {
	byPath map[string][]ast.Expr
	byName map[string][]string // paths
	// the answers by name
	loops        map[string]int
	alternatives map[string]int
}

// declarations reads a policy.
func declarations(file *ast.File) *cost {
	c := &cost{
		byPath: map[string][]ast.Expr{}, byName: map[string][]string{},
		loops: map[string]int{}, alternatives: map[string]int{},
	}
	c.declare(file, "")
	return c
}

// loopsOf refuses a policy with unbounded evaluation, and returns the nesting depth of its
// loops over independent lists.
func (c *cost) loopsOf(file *ast.File) (int, error) {
	for name := range c.byName {
		if c.reaches(name, name, builtFrom) {
			return 0, fmt.Errorf("%s refers to itself, so that its cost is unbounded: give the referenced value a name of its own", name)
		}
	}
	for path := range c.byPath {
		if n := c.choices(path); n > maxAlternatives {
			return 0, fmt.Errorf("%s has %d combinations of alternatives, and %d are the bound", strings.TrimPrefix(path, "."), n, maxAlternatives)
		}
	}
	return c.nested(file, nil), nil
}

// brackets returns how deep brackets are nested, those in texts counted too.
func brackets(text string) int {
	deepest, now := 0, 0
	for _, r := range text {
		switch r {
		case '(', '[', '{':
			now++
			deepest = max(deepest, now)
		case ')', ']', '}':
			now--
		}
	}
	return deepest
}

func depth(file *ast.File) int {
	deepest, now := 0, 0
	ast.Walk(file, func(ast.Node) bool {
		now++
		deepest = max(deepest, now)
		return true
	}, func(ast.Node) { now-- })
	return deepest / 2 // a field and its value are two
}

// declare records the declarations of a node. Alternatives and elements have paths of
// their own, since they are never one value.
func (c *cost) declare(node ast.Node, path string) {
	note := func(name string, value ast.Expr) {
		below := path + "." + name
		if len(c.byPath[below]) == 0 {
			c.byName[name] = append(c.byName[name], below)
		}
		c.byPath[below] = append(c.byPath[below], value)
		c.declare(value, below)
	}
	ast.Walk(node, func(n ast.Node) bool {
		if n == node {
			return true
		}
		switch n := n.(type) {
		case *ast.Field:
			name, _, err := ast.LabelName(n.Label)
			if err != nil {
				name = "[]"
			}
			for _, alias := range aliases(n) { // another name for the field
				c.byName[alias] = append(c.byName[alias], path+"."+alias)
				c.byPath[path+"."+alias] = append(c.byPath[path+"."+alias], &ast.Ident{Name: name})
			}
			note(name, n.Value)
			return false
		case *ast.LetClause:
			note(n.Ident.Name, n.Expr)
			return false
		case *ast.Alias:
			note(n.Ident.Name, n.Expr)
			return false
		case *ast.ListLit:
			for i, element := range n.Elts {
				c.declare(&ast.ParenExpr{X: element}, fmt.Sprintf("%s[%d]", path, i))
			}
			return false
		case *ast.BinaryExpr:
			if n.Op == token.OR {
				c.declare(&ast.ParenExpr{X: n.X}, path+"|")
				c.declare(&ast.ParenExpr{X: n.Y}, path+"||")
				return false
			}
		}
		return true
	}, nil)
}

// aliases returns the other names of a field: X=name, and name~X.
func aliases(field *ast.Field) (names []string) {
	if alias, ok := field.Label.(*ast.Alias); ok {
		names = append(names, alias.Ident.Name)
	}
	if field.Alias != nil {
		names = append(names, field.Alias.Field.Name)
	}
	return names
}

// reaches reports whether a declaration refers to a name, also indirectly, by the names of uses. It
// compares names alone: it misses no reference, but may report false ones.
func (c *cost) reaches(name, wanted string, uses func(ast.Node, func(string))) bool {
	seen := map[string]bool{}
	var from func(string) bool
	from = func(name string) bool {
		found := false
		for _, path := range c.byName[name] {
			for _, value := range c.byPath[path] {
				uses(value, func(next string) {
					if found || next == wanted {
						found = true
						return
					}
					if !seen[next] {
						seen[next] = true
						found = from(next)
					}
				})
			}
		}
		return found
	}
	return from(name)
}

// used reports each name that an expression refers to.
func used(node ast.Node, tell func(string)) { eachName(node, true, tell) }

// builtFrom is used without the conditions of if clauses: these become true or false, and so do not
// grow a value. A field may have a condition on its siblings.
func builtFrom(node ast.Node, tell func(string)) { eachName(node, false, tell) }

func eachName(node ast.Node, conditions bool, tell func(string)) {
	ast.Walk(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			tell(n.Name)
		case *ast.SelectorExpr:
			eachName(n.X, conditions, tell)
			return false
		case *ast.IfClause:
			return conditions
		case *ast.Field:
			if _, _, err := ast.LabelName(n.Label); err != nil {
				eachName(n.Label, conditions, tell)
			}
			eachName(n.Value, conditions, tell)
			return false
		}
		return true
	}, nil)
}

// choices returns how many combinations of alternatives the declarations of a path
// have together.
func (c *cost) choices(path string) int {
	product := 1
	for _, value := range c.byPath[path] {
		product = times(product, c.choicesOf(value))
	}
	return product
}

func (c *cost) choicesOf(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		switch e.Op {
		case token.OR:
			return min(c.choicesOf(e.X)+c.choicesOf(e.Y), tooMany)
		case token.AND:
			return times(c.choicesOf(e.X), c.choicesOf(e.Y))
		}
	case *ast.ParenExpr:
		return c.choicesOf(e.X)
	case *ast.UnaryExpr:
		return c.choicesOf(e.X)
	case *ast.SelectorExpr:
		return c.choicesOf(e.X)
	case *ast.IndexExpr:
		return c.choicesOf(e.X)
	case *ast.Ident:
		return c.choicesByName(e.Name)
	case *ast.StructLit:
		product := 1
		for _, d := range e.Elts {
			if embedded, ok := d.(*ast.EmbedDecl); ok {
				product = times(product, c.choicesOf(embedded.Expr))
			}
		}
		return product
	}
	return 1
}

// choicesByName returns the maximum number of choices of any declaration with a name,
// including those below it: a selector may refer to any of them.
func (c *cost) choicesByName(name string) int {
	if known, ok := c.alternatives[name]; ok {
		return known
	}
	most := 1
	for _, path := range c.byName[name] {
		for other := range c.byPath {
			if other == path || strings.HasPrefix(other, path+".") {
				most = max(most, c.choices(other))
			}
		}
	}
	c.alternatives[name] = most
	return most
}

// tooMany is any number beyond the bounds.
const tooMany = 1 << 20

func times(a, b int) int { return min(a*b, tooMany) }

// nested returns the nesting depth of loops over independent lists in a node. A loop over
// the elements of an outer one does not count, since the data bounds it.
func (c *cost) nested(node ast.Node, bound map[string]bool) int {
	deepest := 0
	ast.Walk(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Comprehension:
			deepest = max(deepest, c.comprehension(n, bound))
			return false
		case *ast.SelectorExpr:
			deepest = max(deepest, c.nested(n.X, bound))
			return false
		case *ast.Field:
			if _, _, err := ast.LabelName(n.Label); err != nil {
				deepest = max(deepest, c.nested(n.Label, bound))
			}
			deepest = max(deepest, c.nested(n.Value, bound))
			return false
		case *ast.LetClause:
			deepest = max(deepest, c.nested(n.Expr, bound))
			return false
		case *ast.Ident:
			if !bound[n.Name] {
				deepest = max(deepest, c.nestedByName(n.Name))
			}
		}
		return true
	}, nil)
	return deepest
}

func (c *cost) comprehension(n *ast.Comprehension, outer map[string]bool) int {
	bound := map[string]bool{}
	for name := range outer {
		bound[name] = true
	}
	around, beside := 0, 0
	for _, clause := range n.Clauses {
		loop, ok := clause.(*ast.ForClause)
		if !ok {
			of := c.nested(clause, bound)
			if let, ok := clause.(*ast.LetClause); ok && of == 0 && uses(let.Expr, bound) {
				bound[let.Ident.Name] = true
			}
			beside = max(beside, of)
			continue
		}
		if of := c.nested(loop.Source, bound); !uses(loop.Source, bound) {
			around += max(1, of)
		} else {
			around += of
		}
		for _, variable := range []*ast.Ident{loop.Key, loop.Value} {
			if variable != nil {
				bound[variable.Name] = true
			}
		}
	}
	return around + max(beside, c.nested(n.Value, bound))
}

// uses reports whether an expression refers to one of some names.
func uses(node ast.Node, names map[string]bool) (found bool) {
	used(node, func(name string) { found = found || names[name] })
	return found
}

func (c *cost) nestedByName(name string) int {
	if known, ok := c.loops[name]; ok {
		return known
	}
	deepest := 0
	c.loops[name] = 0 // for a condition below that refers to it
	for _, path := range c.byName[name] {
		for _, value := range c.byPath[path] {
			deepest = max(deepest, c.nested(value, nil))
		}
	}
	c.loops[name] = deepest
	return deepest
}

// widestOf returns the length of the longest list or object that is written out.
func widestOf(file *ast.File) int {
	widest := 0
	ast.Walk(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ListLit:
			widest = max(widest, len(n.Elts))
		case *ast.StructLit:
			widest = max(widest, len(n.Elts))
		}
		return true
	}, nil)
	return widest
}

// splits reports whether a policy calls a function that makes many values of a text.
func splits(file *ast.File) (found bool) {
	ast.Walk(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			label, _, _ := ast.LabelName(selector.Sel)
			found = found || slices.ContainsFunc([]string{"Split", "Fields", "Runes", "Unmarshal", "FindAll"}, func(of string) bool {
				return strings.HasPrefix(label, of)
			})
		}
		return true
	}, nil)
	return found
}
