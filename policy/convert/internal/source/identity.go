package source

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/verify"
)

// CheckIdentity refuses identities that are half open, or set twice.
func (c *Conversion) CheckIdentity(i ivp.Identity, at string) {
	if (i.Issuer == "") == (i.IssuerRegExp == "") {
		c.Refuse(at, "has no issuer, or one and an expression for it, too", "give exactly one of them")
	}
	if (i.Subject == "") == (i.SubjectRegExp == "") {
		c.Refuse(at, "has no subject, or one and an expression for it, too", "give exactly one of them")
	}
	c.checkLetters(i.Issuer, at)
	c.checkLetters(i.Subject, at)
	c.checkExpression(i.IssuerRegExp, at)
	c.checkExpression(i.SubjectRegExp, at)
}

// checkLetters refuses a star where texts are compared literally: its author meant a
// pattern.
func (c *Conversion) checkLetters(text, at string) {
	if strings.Contains(text, "*") {
		c.Refuse(at, fmt.Sprintf("%q is compared letter by letter, so that * is no wildcard", text), "write an expression, or the whole text")
	}
}

// checkExpression refuses a regular expression that does not compile, or is too large.
func (c *Conversion) checkExpression(text, at string) {
	if text == "" {
		return
	}
	if _, err := verify.Expression(text); err != nil {
		c.Refuse(at, fmt.Sprintf("the expression %q does not compile here: %v", text, err), "mend it (RE2 syntax)")
	}
}

// Anchored is the comment for an identity with an expression that other systems
// find anywhere in the text; empty where it makes no difference.
func Anchored(identities ...ivp.Identity) string {
	for _, i := range identities {
		for _, text := range []string{i.IssuerRegExp, i.SubjectRegExp} {
			if text != "" && (!strings.HasPrefix(text, "^") || !strings.HasSuffix(text, "$")) {
				return "Expressions are matched against the whole text here, and anywhere in it where this policy " +
					"comes from: write .* where a part was meant."
			}
		}
	}
	return ""
}

// CheckLevel refuses levels of notation other than the only one that an
// ImageValidatingPolicy has.
func (c *Conversion) CheckLevel(level, at string) {
	if level != "" && level != "strict" {
		c.Refuse(at, fmt.Sprintf("%q", level), "an ImageValidatingPolicy's notary attestors are always strict: say strict, or keep the policy where it is")
	}
}

// CheckTimestamp does the same for when notation verifies timestamps.
func (c *Conversion) CheckTimestamp(when, at string) {
	if when != "" && when != "always" {
		c.Refuse(at, fmt.Sprintf("%q", when), "timestamps are always verified in an ImageValidatingPolicy: say always, or keep the policy where it is")
	}
}
