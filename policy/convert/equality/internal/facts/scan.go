package facts

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tokenForm matches the tokens of JMESPath and of CEL: texts in all quotes, numbers, names, and single signs. The scan is of words, not
// of syntax: a path that is found and not read costs a few objects, and one that is read in a way that is not seen
// here is met by the paths of the other form of the policy.
var tokenForm = regexp.MustCompile("`[^`]*`|r?'(?:[^'\\\\]|\\\\.)*'|r?\"(?:[^\"\\\\]|\\\\.)*\"|[0-9]+(?:\\.[0-9]+)?|[A-Za-z_][A-Za-z0-9_]*|\\S")

// maxTokens bounds an expression: those of policies have hundreds.
const maxTokens = 5000

// scanner finds the paths in one expression.
type scanner struct {
	facts    *Facts
	tokens   []string
	in       scope
	found    []Path
	literals []any  // the values in it
	last     []Path // the ones that were read last
	lists    []int  // the lengths of found at each open bracket
}

// expression collects the paths and values of an expression, or of a text with {{ }}, and returns the paths.
func (f *Facts) expression(text string, in scope) []Path {
	f.called(text, "")
	return f.relative(text, in, nil)
}

// relative is expression, of a text with the members of a value as names: an answer of the API server.
func (f *Facts) relative(text string, in scope, of []Path) []Path {
	s := &scanner{facts: f, tokens: tokenForm.FindAllString(text, maxTokens), in: maps.Clone(in)}
	for at := 0; at < len(s.tokens); {
		at = s.step(at, of)
	}
	who := strings.Contains(text, "userInfo") || strings.Contains(text, "serviceAccount")
	for _, value := range s.literals {
		if one, ok := value.(string); ok {
			f.circumstance(one, who, strings.Contains(text, "amespace"))
			f.patches(one)
		}
	}
	for _, p := range s.found {
		f.addPath(p)
	}
	for _, value := range s.literals {
		f.addValue(value, s.found...)
	}
	f.addRelated(s.found)
	return s.found
}

func (s *scanner) token(at int) string {
	if at < 0 || at >= len(s.tokens) {
		return ""
	}
	return s.tokens[at]
}

func isName(token string) bool {
	return token != "" && (token[0] == '_' || token[0] >= 'A' && token[0] <= 'Z' || token[0] >= 'a' && token[0] <= 'z') && !strings.ContainsAny(token, "'\"")
}

// literal returns the value of a token that is one.
func literal(token string) (any, bool) {
	switch {
	case strings.HasPrefix(token, "`"):
		var value any
		inner := strings.Trim(token, "`")
		if json.Unmarshal([]byte(inner), &value) != nil {
			return strings.Trim(inner, `"`), true
		}
		return value, true
	case strings.HasPrefix(strings.TrimPrefix(token, "r"), "'"), strings.HasPrefix(strings.TrimPrefix(token, "r"), `"`):
		text := strings.TrimPrefix(token, "r")
		if len(text) < 2 { // a sign alone, as in a sentence
			return nil, false
		}
		return strings.ReplaceAll(text[1:len(text)-1], `\\`, `\`), true
	}
	number, err := strconv.ParseFloat(token, 64)
	return number, err == nil
}

// step reads one token, or a path from it. The names of elements, within a filter, are relative to lists.
func (s *scanner) step(at int, relative []Path) int {
	token := s.token(at)
	if value, ok := literal(token); ok {
		s.literals = append(s.literals, value)
		s.facts.addExact(value, s.last...)
		return at + 1
	}
	switch {
	case token == "[":
		s.lists = append(s.lists, len(s.found))
	case token == "]" && len(s.lists) > 0:
		from := s.lists[len(s.lists)-1]
		s.lists = s.lists[:len(s.lists)-1]
		if s.token(at+1) == "." && isName(s.token(at+2)) && s.token(at+3) == "(" { // [a, b].all(x, ...)
			return s.over(at+2, s.found[min(from, len(s.found)):])
		}
	}
	if !isName(token) || s.token(at-1) == "." {
		return at + 1
	}
	if ofPart.MatchString(token + s.token(at+1)) {
		s.last = nil
	}
	var roots []Path
	next := at + 1
	switch {
	case token == "request" && s.token(at+1) == "." && (s.token(at+2) == "object" || s.token(at+2) == "oldObject"):
		roots, next = []Path{{}}, at+3
	case token == "object" || token == "oldObject" || token == "Object" || token == "target" && s.token(at+1) == ".":
		roots = []Path{{}}
	case token == "images" && s.token(at+1) == ".":
		s.found = append(s.found, imagePaths()...)
		return next
	case token == "variables" && s.token(at+1) == ".":
		roots, next = s.in[s.token(at+2)], at+3
	case s.in[token] != nil:
		roots = s.in[token]
	case relative != nil && s.token(at+1) != "(":
		for _, p := range relative {
			roots = append(roots, p.With(token))
		}
	default:
		return next
	}
	next = s.follow(next, roots)
	if value, ok := literal(s.token(at - 2)); ok && s.token(at-1) == "in" {
		s.facts.addExact(value, s.last...)
	}
	return next
}

// over declares the variable of a call over a list whose elements are known.
func (s *scanner) over(at int, elements []Path) int {
	if !slices.Contains(macros(), s.token(at)) || !isName(s.token(at+2)) || s.token(at+3) != "," {
		return at + 1
	}
	s.in[s.token(at+2)] = slices.Clone(elements)
	return at + 4
}

// macros are the calls over the elements of a list.
func macros() []string {
	return []string{"all", "exists", "exists_one", "map", "filter", "existsOne", "transformList", "transformMap"}
}

// follow reads the members behind a value.
func (s *scanner) follow(at int, roots []Path) int {
	extend := func(name string) {
		extended := make([]Path, len(roots))
		for i, p := range roots {
			extended[i] = p.With(name)
		}
		roots = extended
	}
	for {
		switch {
		case s.token(at) == "." && s.token(at+1) == "?" && isName(s.token(at+2)):
			extend(s.token(at + 2))
			at += 3
		case s.token(at) == "." && isName(s.token(at+1)) && s.token(at+2) == "(":
			return s.call(at+1, roots)
		case s.token(at) == "." && (isName(s.token(at+1)) || strings.HasPrefix(s.token(at+1), `"`)):
			extend(strings.Trim(s.token(at+1), `"`))
			at += 2
		case s.token(at) == "." && s.token(at+1) == "[":
			at, roots = s.selected(at+2, roots)
		case s.token(at) == "[":
			next, name, isFilter := s.index(at)
			if name != "" {
				extend(name)
			}
			if isFilter {
				for depth := 1; next < len(s.tokens) && depth > 0; {
					switch s.tokens[next] {
					case "[":
						depth++
					case "]":
						depth--
					}
					next = s.step(next, roots)
				}
			}
			at = next
		default:
			s.found, s.last = append(s.found, roots...), roots
			return at
		}
	}
}

// selected reads .[a, b]: several members.
func (s *scanner) selected(at int, roots []Path) (int, []Path) {
	var all []Path
	for ; at < len(s.tokens) && s.tokens[at] != "]"; at++ {
		if isName(s.tokens[at]) {
			for _, p := range roots {
				all = append(all, p.With(s.tokens[at]))
			}
		}
	}
	at++
	if s.token(at) == "[" && s.token(at+1) == "]" && s.token(at+2) == "[" { // flattened twice
		at += 2
	}
	return at, all
}

// index reads [0], [*], [], ["name"], [?"name"] and the beginning of a filter.
func (s *scanner) index(at int) (next int, name string, isFilter bool) {
	inner := at + 1
	if s.token(inner) == "]" {
		return inner + 1, Each, false
	}
	optional := s.token(inner) == "?"
	if optional {
		inner++
	}
	if value, ok := literal(s.token(inner)); ok && s.token(inner+1) == "]" {
		if text, is := value.(string); is {
			return inner + 2, text, false
		}
		return inner + 2, Each, false
	}
	if s.token(inner) == "*" && s.token(inner+1) == "]" {
		return inner + 2, Each, false
	}
	return inner, Each, optional
}

// call reads a method of CEL: one over the elements of a list declares a variable, one that gives a default is
// passed over.
func (s *scanner) call(at int, roots []Path) int {
	s.found, s.last = append(s.found, roots...), roots
	switch name := s.token(at); {
	case slices.Contains(macros(), name) && isName(s.token(at+2)):
		if s.token(at+3) != "," {
			return at + 2
		}
		of := roots
		if len(of) == 0 {
			of = s.found
		}
		var elements []Path
		for _, p := range of {
			elements = append(elements, p.With(Each))
		}
		s.in[s.token(at+2)] = elements
		return at + 4
	case ofPart.MatchString(name + s.token(at+1)):
		s.last = nil
	case name == "orValue" || name == "hasValue" || name == "value":
		return s.passed(at+1, roots)
	}
	return at + 2
}

// passed passes over the arguments of a call, and follows the value behind them.
func (s *scanner) passed(at int, roots []Path) int {
	depth := 0
	for ; at < len(s.tokens); at++ {
		switch s.tokens[at] {
		case "(":
			depth++
		case ")":
			depth--
		}
		if value, ok := literal(s.tokens[at]); ok {
			s.literals = append(s.literals, value)
		}
		if depth == 0 {
			break
		}
	}
	at++
	// A list that is put together of several: (a.orValue([]) + b.orValue([])).all(c, ...)
	for s.token(at) == ")" && s.token(at+1) == "." {
		at, roots = at+1, s.found
	}
	return s.follow(at, roots)
}
