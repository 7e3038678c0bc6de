package verify

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/internal/expression"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Bounds of an expression: a policy's author may have few rights, and there may be two for each identity.
const (
	// maxExpression bounds its length, in bytes.
	maxExpression = 4 << 10
	// maxProgram bounds its size (expression.Size), and so its memory to some 300 KiB. A shorter one has
	// minProgram and programByByte for each byte, so that a policy's memory grows with its text. Expressions
	// of identities have a size of some 200, and with repetitions of classes some ten for each byte.
	maxProgram    = 10_000
	minProgram    = 1_000
	programByByte = 16
	// programBytes is the memory of one instruction, about.
	programBytes = 50
)

// Matcher compares a text from a certificate with what a policy expects. The
// zero Matcher matches nothing.
type Matcher struct {
	mode    string // "exact", "wildcard", "regexp"
	pattern string
	re      *regexp.Regexp // of an expression
	program int            // size of re
}

// Exactly matches the identical text.
func Exactly(text string) Matcher { return Matcher{mode: "exact", pattern: text} }

// Wildcard matches with `*` (any run of characters) and `?` (any one), as
// Kyverno's subject and issuer do, over the whole text.
func Wildcard(pattern string) Matcher {
	if !wildcard.Contains(pattern) {
		return Exactly(pattern)
	}
	return Matcher{mode: "wildcard", pattern: pattern}
}

// Expression matches the whole text with a regular expression (RE2). It is always anchored at
// both ends; to match a prefix, the expression must end with `.*`. It is refused above 4 KiB, or if it
// compiles to a program that is too large for its length, such as a{1000}.
func Expression(pattern string) (Matcher, error) {
	switch {
	case pattern == "":
		return Matcher{}, fmt.Errorf("the expression is empty")
	case len(pattern) > maxExpression:
		return Matcher{}, fmt.Errorf("the expression has %d bytes, more than the bound of %d", len(pattern), maxExpression)
	}
	most := min(maxProgram, minProgram+programByByte*len(pattern))
	size, err := expression.Size(pattern) // parsed alone, so that `a)|(b` is refused
	switch {
	case err != nil:
		return Matcher{}, fmt.Errorf("expression %q: %w", pattern, err)
	case size > most:
		return Matcher{}, fmt.Errorf("the expression compiles to some %d instructions, more than the bound of %d for its length; repeat less, or use *", size, most)
	}
	re, err := regexp.Compile(`\A(?:` + pattern + `)\z`)
	if err != nil {
		return Matcher{}, fmt.Errorf("expression %q: %w", pattern, err)
	}
	return Matcher{mode: "regexp", pattern: pattern, re: re, program: size}, nil
}

// Size returns about how much memory the Matcher takes, in bytes.
func (m Matcher) Size() int { return len(m.pattern) + programBytes*m.program }

// Match reports whether text meets the expectation. An empty text meets none.
func (m Matcher) Match(text string) bool {
	if text == "" || m.mode == "" {
		return false
	}
	switch m.mode {
	case "exact":
		return m.pattern == text
	case "wildcard":
		return wildcard.Match(m.pattern, text)
	default:
		return m.re.MatchString(text)
	}
}

// IsZero reports whether m has no pattern and so matches nothing.
func (m Matcher) IsZero() bool { return m.mode == "" || m.pattern == "" }

// String returns the pattern, marked unless it is an exact text, and as Visible.
func (m Matcher) String() string {
	if m.mode == "regexp" {
		return "/" + m.pattern + "/"
	}
	return Visible(m.pattern)
}

// Beside is String for a message with found texts, none of which matches. It says that an
// expression matches a part of one, as is enough for cosign and Kyverno.
func (m Matcher) Beside(found ...string) string {
	if m.mode != "regexp" {
		return m.String()
	}
	part, err := regexp.Compile(m.pattern)
	if err == nil && slices.ContainsFunc(found, part.MatchString) && !slices.ContainsFunc(found, m.Match) {
		return m.String() + ", which must match the whole text and matches a part of it"
	}
	return m.String()
}

// Visible quotes a text whose white space a message would hide, such as a line break at its end.
func Visible(text string) string {
	if text == strings.Join(strings.Fields(text), " ") {
		return text
	}
	return strconv.Quote(text) + " with its white space"
}

// MarshalJSON makes a Matcher part of an authority's hash.
func (m Matcher) MarshalJSON() ([]byte, error) {
	return json.Marshal([2]string{m.mode, m.pattern})
}

// Identity is the required subject of a short-lived certificate (one of its subject alternative
// names) and its OpenID Connect issuer.
type Identity struct {
	Issuer  Matcher `json:"issuer"`
	Subject Matcher `json:"subject"`
}

// Match reports whether the issuer and one of the subjects meet the identity. A
// certificate without a subject meets none.
func (i Identity) Match(issuer string, subjects []string) bool {
	if !i.Issuer.Match(issuer) {
		return false
	}
	for _, subject := range subjects {
		if i.Subject.Match(subject) {
			return true
		}
	}
	return false
}

// String returns "subject (issuer)".
func (i Identity) String() string { return i.Subject.String() + " (" + i.Issuer.String() + ")" }

// String returns the identities, joined by "or".
func (k Keyless) String() string { return k.Beside("", nil) }

// Beside is String for a message with the found issuer and subjects, as Matcher's.
func (k Keyless) Beside(issuer string, subjects []string) string {
	identities := make([]string, 0, len(k.Identities))
	for _, identity := range k.Identities {
		identities = append(identities, identity.Subject.Beside(subjects...)+" ("+identity.Issuer.Beside(issuer)+")")
	}
	return strings.Join(identities, " or ")
}

// Extension is a Fulcio certificate extension and its required value.
type Extension struct {
	// OID is the object identifier in dotted form, under 1.3.6.1.4.1.57264.1.
	OID string `json:"oid"`
	// Name is the extension's name in the policy, for messages.
	Name  string  `json:"-"`
	Value Matcher `json:"value"`
}
