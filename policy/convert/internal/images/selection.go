package images

import (
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
)

// Spelling is how a source writes the image that it compares with its patterns.
type Spelling int

const (
	// ByIdentity is registry/repository with the digest, or else the tag, or else :latest. A
	// tag with a digest is ignored.
	ByIdentity Spelling = iota
	// AsWritten is registry/repository with the tag and the digest of the reference, or
	// :latest if it has neither, and Docker Hub as index.docker.io: the output of
	// go-containerregistry.
	AsWritten
)

// cel is the expression of the spelling over ref. References are normalised there, so that
// the spelling does not select the rule.
func (s Spelling) cel() string {
	hub, version := "docker.io", `(ref.contains("@") ? ref.find("@.*$") : ref.matches(":[^/:]+$") ? ref.find(":[^/:]+$") : ":latest")`
	if s == AsWritten {
		hub, version = "index.docker.io", `(ref.matches(":[^/:@]+$|@[^/]*$") ? ref.find("(:[^/:@]+)?(@[^/]*)?$") : ":latest")`
	}
	return `(image(ref).registry() in ["docker.io", "index.docker.io"] ? "` + hub + `" : image(ref).registry().lowerAscii())` +
		"\n  + \"/\" + image(ref).repository()\n  + " + version
}

// Test is a question about a spelled name, in CEL over the variable name.
type Test interface{ cel() string }

// Pattern is a regular expression that is found somewhere in the name.
type Pattern string

func (p Pattern) cel() string { return "name.matches(" + Quote(string(p)) + ")" }

// All holds if each of its tests does; none are always true.
type All []Test

func (a All) cel() string { return joinTests(a, " && ", "true") }

// Some holds if one of its tests does; none are never true.
type Some []Test

func (s Some) cel() string { return joinTests(s, " || ", "false") }

// Not holds if its test does not.
type Not struct{ Test }

func (n Not) cel() string {
	switch n.Test.(type) {
	case Pattern:
		return "!" + n.Test.cel()
	default:
		return "!(" + n.Test.cel() + ")"
	}
}

func joinTests[T ~[]Test](list T, operator, none string) string {
	if len(list) == 0 {
		return none
	}
	texts := make([]string, len(list))
	for i, one := range list {
		texts[i] = one.cel()
		switch inner := one.(type) {
		case All:
			if len(inner) > 1 && len(list) > 1 {
				texts[i] = "(" + texts[i] + ")"
			}
		case Some:
			if len(inner) > 1 && len(list) > 1 {
				texts[i] = "(" + texts[i] + ")"
			}
		}
	}
	return strings.Join(texts, operator)
}

// Quote writes a text as CEL: raw where it can be, so that expressions stay
// readable.
func Quote(text string) string {
	if !strings.ContainsAny(text, "'\n\r") {
		return "r'" + text + "'"
	}
	return strconv.QuoteToASCII(text)
}

// Selection is the images that one rule of a source takes: those of which takes
// holds, and none of the tests of the rules that come before it.
type Selection struct {
	Spelling Spelling
	Takes    Test
	Before   []Test
}

// Reference writes the selection, one exclusion a line.
func (s Selection) Reference(comment string) ivp.ImageReference {
	var lines []string
	if every, ok := s.Takes.(All); !ok || len(every) > 0 || len(s.Before) == 0 {
		lines = append(lines, s.Takes.cel())
	}
	if several, _ := s.Takes.(Some); len(several) > 1 && len(s.Before) > 0 {
		lines[0] = "(" + lines[0] + ")"
	}
	for _, one := range s.Before {
		lines = append(lines, Not{Test: one}.cel())
	}
	return ivp.ImageReference{
		Comment:    comment,
		Expression: "[" + s.Spelling.cel() + "]\n  .exists(name, " + strings.Join(lines, "\n    && ") + ")",
	}
}

// Others selects the images that no rule matches.
func Others(s Spelling, rules []Test) Selection {
	return Selection{Spelling: s, Takes: All{}, Before: rules}
}
