package rego

import (
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/quaymaster/quaymaster/internal/expression"
)

// maxPattern bounds the length of a regular expression, which is parsed before it is measured.
const maxPattern = 64 << 10

// patterns are the functions that compile a regular expression, with the operand that it is.
func patterns() map[string]int {
	return map[string]int{
		"regex.match": 0, "re_match": 0, "regex.is_valid": 0, "regex.split": 0, "regex.find_n": 0,
		"regex.find_all_string_submatch_n": 0, "regex.template_match": 0, "regex.replace": 1,
	}
}

// measured is such a function, which ends the evaluation instead of compiling a program without a bound.
func measured(name string, pattern int) strict {
	return strict{name: strings.ReplaceAll(name, ".", "_") + "()", all: func(c rego.BuiltinContext, operands []*ast.Term) (out *ast.Term, err error) {
		if text, ok := operands[pattern].Value.(ast.String); ok {
			if err := checkPattern(name, string(text), operands); err != nil {
				return nil, rego.NewHaltError(err)
			}
		}
		err = topdown.GetBuiltin(name)(c, operands, func(t *ast.Term) error { out = t; return nil })
		return out, err
	}}
}

func checkPattern(name, text string, operands []*ast.Term) error {
	if len(text) > maxPattern {
		return fmt.Errorf("%s: a regular expression of %d bytes exceeds the bound of %d", name, len(text), maxPattern)
	}
	if name == "regex.template_match" {
		text = template(text, operands[2], operands[3])
	}
	size, err := expression.Size(text)
	switch {
	case err != nil && name == "regex.template_match":
		return fmt.Errorf("%s: %w", name, err)
	case err != nil:
		return nil //nolint:nilerr // the function itself reports it, or answers that it is none
	case size > expression.MaxProgram:
		return fmt.Errorf("%s: a regular expression compiles to some %d instructions, more than the bound of %d: repeat less, or use *", name, size, expression.MaxProgram)
	}
	return nil
}

// template is an expression as large as those of a template together: its outermost delimiters are a group's.
func template(text string, begin, end *ast.Term) string {
	first, _ := begin.Value.(ast.String)
	last, _ := end.Value.(ast.String)
	if len(first) != 1 || len(last) != 1 {
		return text
	}
	var out strings.Builder
	level := 0
	for i := range len(text) {
		switch {
		case text[i] == first[0]:
			level++
			if level == 1 {
				out.WriteString("(?:")
				continue
			}
		case text[i] == last[0]:
			level--
			if level == 0 {
				out.WriteString(")")
				continue
			}
		case level == 0: // plain text
			out.WriteString(".")
			continue
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// checkPatterns bounds the expressions that a policy writes out, each and together.
func checkPatterns(m *ast.Module) error {
	var sum expression.Sum
	var errs []error
	operand := func(call []*ast.Term) {
		i, is := patterns()[call[0].Value.String()]
		if !is || len(call) <= i+1 || call[0].Value.String() == "regex.template_match" {
			return
		}
		text, ok := call[i+1].Value.(ast.String)
		if _, err := expression.Size(string(text)); ok && err == nil {
			if err := sum.Add(string(text)); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", call[0].Location, err))
			}
		}
	}
	ast.NewGenericVisitor(func(n any) bool {
		switch n := n.(type) {
		case *ast.Expr:
			if call, is := n.Terms.([]*ast.Term); is {
				operand(call)
			}
		case ast.Call:
			operand(n)
		}
		return len(errs) > 0
	}).Walk(m)
	return errors.Join(errs...)
}
