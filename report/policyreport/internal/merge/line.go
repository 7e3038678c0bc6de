package merge

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// line is the key that comparable results of several objects share.
type line struct{ kind, policy, rule, container string }

// entry has the results on a line: one shared by all unlisted objects, and those of listed objects, by
// identity.
type entry struct {
	shared *result.Result
	listed map[string]result.Result
}

// lineOf returns the line of a result. A rule that was generated from a rule for pods has the
// line of that rule.
func lineOf(r result.Result) line {
	l := line{kind: r.Policy.Kind, policy: r.Policy.String(), rule: baseRule(r.Rule)}
	if r.Image != nil {
		l.container = r.Image.Container
	}
	return l
}

// prefixes are the prefixes of rules generated from rules for pods, in Kyverno's dialects.
func prefixes() []string { return []string{"autogen-cronjobs-", "autogen-cronjob-", "autogen-"} }

func baseRule(rule string) string {
	for _, prefix := range prefixes() {
		if base, ok := strings.CutPrefix(rule, prefix); ok && base != "" {
			return base
		}
	}
	return rule
}

// Identity is the UID of an object, or without one its whole name.
func Identity(of report.Resource) string {
	if of.UID != "" {
		return of.UID
	}
	return of.APIVersion + "/" + of.Kind + "/" + of.Namespace + "/" + of.Name
}

// Token represents a result without an entry in a report: hashes of the policy, of the rule and
// container, and of the object; the last is empty for a shared result. They are as short as
// possible. In a million reports of twenty rules, one has a collision, which miscounts a pass
// until that changes.
type Token struct{ policy, rule, who string }

// The lengths of a token's parts, in characters of 6 bits.
const (
	policyLength = 3
	ruleLength   = 4
	whoLength    = 6
)

func tokenOf(l line, who string) Token {
	t := Token{policy: code(l.kind+"/"+l.policy, policyLength), rule: code(l.policy+"\x00"+l.rule+"\x00"+l.container, ruleLength)}
	if who != "" {
		t.who = code(who, whoLength)
	}
	return t
}

func code(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:length]
}

func (t Token) String() string { return t.policy + t.rule + t.who }
