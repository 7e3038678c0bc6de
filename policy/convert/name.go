package convert

import (
	"strconv"
	"strings"
)

// spelling is how a source writes the image that it compares with its patterns.
type spelling int

const (
	// byIdentity is registry/repository with the digest, or else the tag, or else
	// :latest. A tag beside a digest is decoration.
	byIdentity spelling = iota
	// asWritten is registry/repository with the tag and the digest that the
	// reference has, or :latest if it has neither, and Docker Hub as
	// index.docker.io: what go-containerregistry prints.
	asWritten
)

// cel is the expression of the spelling over ref. References are normalised
// there, so that nobody chooses by the way of writing which rule applies.
func (s spelling) cel() string {
	hub, version := "docker.io", `(ref.contains("@") ? ref.find("@.*$") : ref.matches(":[^/:]+$") ? ref.find(":[^/:]+$") : ":latest")`
	if s == asWritten {
		hub, version = "index.docker.io", `(ref.matches(":[^/:@]+$|@[^/]*$") ? ref.find("(:[^/:@]+)?(@[^/]*)?$") : ":latest")`
	}
	return `(image(ref).registry() in ["docker.io", "index.docker.io"] ? "` + hub + `" : image(ref).registry().lowerAscii())` +
		"\n  + \"/\" + image(ref).repository()\n  + " + version
}

// test is a question about a spelled name, in CEL over the variable name.
type test interface{ cel() string }

// pattern is a regular expression that is found somewhere in the name.
type pattern string

func (p pattern) cel() string { return "name.matches(" + quote(string(p)) + ")" }

// all holds if each of its tests does; none are always true.
type all []test

func (a all) cel() string { return joinTests(a, " && ", "true") }

// some holds if one of its tests does; none are never true.
type some []test

func (s some) cel() string { return joinTests(s, " || ", "false") }

// not holds if its test does not.
type not struct{ test }

func (n not) cel() string {
	switch n.test.(type) {
	case pattern:
		return "!" + n.test.cel()
	default:
		return "!(" + n.test.cel() + ")"
	}
}

func joinTests[T ~[]test](list T, operator, none string) string {
	if len(list) == 0 {
		return none
	}
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = one.cel()
		switch inner := one.(type) {
		case all:
			if len(inner) > 1 && len(list) > 1 {
				texts[i] = "(" + texts[i] + ")"
			}
		case some:
			if len(inner) > 1 && len(list) > 1 {
				texts[i] = "(" + texts[i] + ")"
			}
		}
	}
	return strings.Join(texts, operator)
}

// quote writes a text as CEL: raw where it can be, so that expressions stay
// readable.
func quote(text string) string {
	if !strings.ContainsAny(text, "'\n\r") {
		return "r'" + text + "'"
	}
	return strconv.QuoteToASCII(text)
}

// selection is the images that one rule of a source takes: those of which takes
// holds, and none of the tests of the rules that come before it.
type selection struct {
	spelling spelling
	takes    test
	before   []test
}

// reference writes the selection, one exclusion a line.
func (s selection) reference(comment string) imageReference {
	var lines []string
	if every, ok := s.takes.(all); !ok || len(every) > 0 || len(s.before) == 0 {
		lines = append(lines, s.takes.cel())
	}
	if several, ok := s.takes.(some); ok && len(several) > 1 && len(s.before) > 0 {
		lines[0] = "(" + lines[0] + ")"
	}
	for _, one := range s.before {
		lines = append(lines, not{one}.cel())
	}
	return imageReference{
		comment:    comment,
		Expression: "[" + s.spelling.cel() + "]\n  .exists(name, " + strings.Join(lines, "\n    && ") + ")",
	}
}

// others selects what no rule takes.
func others(s spelling, rules []test) selection {
	return selection{spelling: s, takes: all{}, before: rules}
}
