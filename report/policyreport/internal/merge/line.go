package merge

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// line is what results of several objects have in common that are about the same.
type line struct{ kind, policy, rule, container string }

// said is what is said on a line: by all whom nothing is listed of, and by those who
// are listed, by what they are known by.
type said struct {
	shared *result.Result
	listed map[string]result.Result
}

// lineOf returns the line of a result. A rule that was generated from one about pods is
// on the line of that.
func lineOf(r result.Result) line {
	l := line{kind: r.Policy.Kind, policy: r.Policy.String(), rule: baseRule(r.Rule)}
	if r.Image != nil {
		l.container = r.Image.Container
	}
	return l
}

// prefixes are what the names of rules begin with that follow from those about pods, in
// Kyverno's dialects.
func prefixes() []string { return []string{"autogen-cronjobs-", "autogen-cronjob-", "autogen-"} }

func baseRule(rule string) string {
	for _, prefix := range prefixes() {
		if base, ok := strings.CutPrefix(rule, prefix); ok && base != "" {
			return base
		}
	}
	return rule
}

// Identity is what an object is known by: its UID, or without one its whole name.
func Identity(of report.Resource) string {
	if of.UID != "" {
		return of.UID
	}
	return of.APIVersion + "/" + of.Kind + "/" + of.Namespace + "/" + of.Name
}

// Token is what a report keeps of a word that has no entry: hashes of the policy, of the
// rule and container, and of who said it; the last is empty for a shared word. They
// are as short as they can be: of a million reports of twenty rules, one takes two of
// them for one, which miscounts a pass until that changes.
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
