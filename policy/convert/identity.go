package convert

import (
	"fmt"
	"regexp"
	"strings"
)

// checkIdentity refuses identities of which half is open, or said twice.
func (c *conversion) checkIdentity(i identity, at string) {
	if (i.Issuer == "") == (i.IssuerRegExp == "") {
		c.refuse(at, "has no issuer, or one and an expression for it, too", "give exactly one of them")
	}
	if (i.Subject == "") == (i.SubjectRegExp == "") {
		c.refuse(at, "has no subject, or one and an expression for it, too", "give exactly one of them")
	}
	c.checkLetters(i.Issuer, at)
	c.checkLetters(i.Subject, at)
	c.checkExpression(i.IssuerRegExp, at)
	c.checkExpression(i.SubjectRegExp, at)
}

// checkLetters refuses a star where texts are compared letter by letter: whoever
// wrote it meant something else.
func (c *conversion) checkLetters(text, at string) {
	if strings.Contains(text, "*") {
		c.refuse(at, fmt.Sprintf("%q is compared letter by letter, so that * is no wildcard", text), "write an expression, or the whole text")
	}
}

// checkExpression refuses a regular expression that does not compile.
func (c *conversion) checkExpression(text, at string) {
	if _, err := regexp.Compile(text); err != nil {
		c.refuse(at, fmt.Sprintf("the expression %q does not compile", text), "mend it (RE2 syntax)")
	}
}

// anchored is the comment for an identity with an expression that other systems
// find anywhere in the text; empty where it makes no difference.
func anchored(identities ...identity) string {
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

// trustStore is a notary attestor's certificates.
func trustStore(certs, tsa []string) *notary {
	n := &notary{}
	if len(certs) > 0 {
		n.Certs = &value{Value: strings.Join(certs, "")}
	}
	if len(tsa) > 0 {
		n.TSACerts = &value{Value: strings.Join(tsa, "")}
	}
	return n
}

// strict refuses levels of notation other than the only one that an
// ImageValidatingPolicy has.
func (c *conversion) strict(level, at string) {
	if level != "" && level != "strict" {
		c.refuse(at, fmt.Sprintf("%q", level), "an ImageValidatingPolicy's notary attestors are always strict: say strict, or keep the policy where it is")
	}
}

// always does the same for when timestamps are verified.
func (c *conversion) always(when, at string) {
	if when != "" && when != "always" {
		c.refuse(at, fmt.Sprintf("%q", when), "timestamps are always verified in an ImageValidatingPolicy: say always, or keep the policy where it is")
	}
}
