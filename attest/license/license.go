// Package license evaluates SPDX licence expressions (SPDX 2.3, annex D, and 3.0, annex B) in three-valued
// logic: an identifier that the SPDX licence list does not have is unknown, and an answer that depends on
// it is an error. The list is that of github.com/github/go-spdx.
package license

import (
	"fmt"
	"slices"
	"strings"

	"github.com/github/go-spdx/v2/spdxexp/spdxlicenses"

	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// MaxLength bounds an expression, in bytes: those of distributions' packages have some kilobytes.
	MaxLength = 16 << 10
	// maxDepth bounds the parentheses in an expression.
	maxDepth = 64
)

// Expression is a parsed licence expression. The zero value names no licence: every answer is an error.
type Expression struct{ root node }

// node is a licence, or a conjunction or disjunction.
type node struct {
	license
	operator operator
	parts    []node
}

type operator int

const (
	leaf operator = iota
	conjunction
	disjunction
)

// license is a licence of an expression or of a list.
type license struct {
	// id is in the spelling of the SPDX list; as it was written if the list does not have it.
	id string
	// later: or any later version.
	later     bool
	exception string
	// known: the list has the licence and the exception.
	known bool
}

// String returns the licence as an expression.
func (l license) String() string {
	text := l.id
	if l.later {
		text += "+"
	}
	if l.exception != "" {
		text += " WITH " + l.exception
	}
	return text
}

// Parse parses an expression. Identifiers that the SPDX list does not have are no error: they are unknown.
func Parse(text string) (Expression, error) {
	if len(text) > MaxLength {
		return Expression{}, &limit.ExceededError{What: "the licence expression", Most: MaxLength}
	}
	p := parser{tokens: tokensOf(text)}
	root, err := p.choices(0)
	if err == nil && p.at < len(p.tokens) {
		err = fmt.Errorf("%q follows the expression", limit.Text(p.tokens[p.at], 100))
	}
	if err != nil {
		return Expression{}, fmt.Errorf("licence expression %q: %w", limit.Text(text, 200), err)
	}
	return Expression{root}, nil
}

// All returns the conjunction of expressions: each applies.
func All(list []Expression) Expression {
	if len(list) == 1 {
		return list[0]
	}
	root := node{operator: conjunction}
	for _, each := range list {
		root.parts = append(root.parts, each.root)
	}
	return Expression{root}
}

// tokensOf splits an expression at white space and parentheses.
func tokensOf(text string) []string {
	return strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text))
}

// parser is recursive for parentheses alone, which maxDepth bounds.
type parser struct {
	tokens []string
	at     int
}

func (p *parser) next() string {
	if p.at < len(p.tokens) {
		return p.tokens[p.at]
	}
	return ""
}

// accept reads an operator, in upper or lower case, as in SPDX 3.0.
func (p *parser) accept(word string) bool {
	if next := p.next(); next != word && next != strings.ToLower(word) {
		return false
	}
	p.at++
	return true
}

func (p *parser) choices(depth int) (node, error) {
	return p.joined(disjunction, "OR", func() (node, error) {
		return p.joined(conjunction, "AND", func() (node, error) { return p.term(depth) })
	})
}

// joined parses terms with an operator between them.
func (p *parser) joined(as operator, word string, term func() (node, error)) (node, error) {
	first, err := term()
	if err != nil {
		return node{}, err
	}
	all := node{operator: as, parts: []node{first}}
	for p.accept(word) {
		other, err := term()
		if err != nil {
			return node{}, err
		}
		all.parts = append(all.parts, other)
	}
	if len(all.parts) == 1 {
		return first, nil
	}
	return all, nil
}

func (p *parser) term(depth int) (node, error) {
	if p.accept("(") {
		if depth >= maxDepth {
			return node{}, fmt.Errorf("parentheses are more than %d deep", maxDepth)
		}
		inner, err := p.choices(depth + 1)
		if err == nil && !p.accept(")") {
			err = fmt.Errorf("%q in place of a closing parenthesis", limit.Text(p.next(), 100))
		}
		return inner, err
	}
	id, err := p.identifier()
	if err != nil {
		return node{}, err
	}
	exception := ""
	if p.accept("WITH") {
		exception, err = p.identifier()
		if err != nil {
			return node{}, err
		}
	}
	return node{license: licenseOf(id, exception)}, nil
}

// identifier reads a licence, an exception or a reference.
func (p *parser) identifier() (string, error) {
	id := p.next()
	if id == "" || isOperator(id) || strings.ContainsFunc(id, isForeign) {
		return "", fmt.Errorf("%q in place of a licence", limit.Text(id, 100))
	}
	p.at++
	return id, nil
}

func isOperator(word string) bool {
	return slices.Contains([]string{"(", ")", "AND", "OR", "WITH"}, strings.ToUpper(word))
}

// isForeign reports whether no identifier has a character.
func isForeign(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(".-:+", r)
}

// licenseOf normalises a licence: Name-or-later is Name-only with later versions, as Name+ is, and a deprecated
// Name without either is Name-only. Deprecated names of a licence with an exception stay unknown.
func licenseOf(id, exception string) license {
	base, later := strings.CutSuffix(id, "+")
	if listed, is := isListed(base); is {
		base = listed
		if name, ok := strings.CutSuffix(listed, "-or-later"); ok {
			base, later = name, true
		}
		if only, ok := isListed(base + "-only"); ok {
			base = only
		}
		is = !strings.Contains(base, "-with-")
		if exception != "" {
			found, name := spdxlicenses.IsException(exception)
			is = is && found
			if found {
				exception = name
			}
		}
		return license{base, later, exception, is}
	}
	return license{base, later, exception, false}
}

// isListed returns a licence in the spelling of the list, in which case does not count.
func isListed(id string) (string, bool) {
	if is, listed := spdxlicenses.IsActiveLicense(id); is {
		return listed, true
	}
	is, listed := spdxlicenses.IsDeprecatedLicense(id)
	return listed, is
}
