package merge

import (
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/report/result"
)

// setToken stores a result without an entry, where it is counted or distinguishes others. It
// reports whether a count changed.
func (c *Content) setToken(t Token, status result.Status, who string) bool {
	before, there := c.Unlisted[t]
	counted := there && c.show.counts(before)
	if !c.show.counts(status) && (who != "" || !c.shares()) {
		delete(c.Unlisted, t)
		return counted
	}
	c.Unlisted[t] = status
	return counted != c.show.counts(status)
}

// dropToken removes a result without an entry, and reports whether a count changed.
func (c *Content) dropToken(t Token) bool {
	status, there := c.Unlisted[t]
	delete(c.Unlisted, t)
	return there && c.show.counts(status)
}

// dropTokens removes the tokens for which gone holds, and reports whether a count changed.
func (c *Content) dropTokens(gone func(t Token, status result.Status) bool) bool {
	changed := false
	for t, status := range c.Unlisted {
		if gone(t, status) {
			changed = c.dropToken(t) || changed
		}
	}
	return changed
}

func sameLine(t Token, l line) bool {
	of := tokenOf(l, "")
	return t.policy == of.policy && t.rule == of.rule
}

// FormatTokens encodes tokens for an annotation: by status, the shared ones first, as in
// pass=AAABBBBCCCDDDD.EEEFFFFGGGGGG.
func FormatTokens(of map[Token]result.Status) string {
	var parts []string
	for _, status := range result.Statuses() {
		var shared, own []string
		for t, s := range of {
			switch {
			case s != status:
			case t.who == "":
				shared = append(shared, t.String())
			default:
				own = append(own, t.String())
			}
		}
		if len(shared)+len(own) == 0 {
			continue
		}
		slices.Sort(shared)
		slices.Sort(own)
		part := string(status) + "=" + strings.Join(shared, "")
		if len(own) > 0 {
			part += "." + strings.Join(own, "")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

// ParseTokens decodes tokens and ignores invalid ones.
func ParseTokens(text string) map[Token]result.Status {
	of := map[Token]result.Status{}
	for part := range strings.FieldsSeq(text) {
		name, codes, _ := strings.Cut(part, "=")
		if !slices.Contains(result.Statuses(), result.Status(name)) {
			continue
		}
		shared, own, _ := strings.Cut(codes, ".")
		maps.Copy(of, cutTokens(shared, result.Status(name), 0))
		maps.Copy(of, cutTokens(own, result.Status(name), whoLength))
	}
	return of
}

func cutTokens(codes string, status result.Status, who int) map[Token]result.Status {
	of := map[Token]result.Status{}
	length := policyLength + ruleLength + who
	for ; len(codes) >= length; codes = codes[length:] {
		one := codes[:length]
		if strings.Trim(one, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			continue
		}
		of[Token{policy: one[:policyLength], rule: one[policyLength : policyLength+ruleLength], who: one[policyLength+ruleLength:]}] = status
	}
	return of
}
