package imagevalidating_test

import (
	"strings"
	"testing"
)

// TestReadsOfTheRequester omit a policy from scans, also where only an attestor has them.
func TestReadsOfTheRequester(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		omitted      bool
	}{
		{"none", minimal, false},
		{"a validation", strings.Replace(minimal, "> 0)\n", "> 0) || request.userInfo.username == 'ann'\n", 1), true},
		{"another member of the request", strings.Replace(minimal, "> 0)\n", "> 0) || request.name == 'ann'\n", 1), false},
		{"a condition", minimal + "  matchConditions: [{name: a, expression: request.userInfo.username == 'ann'}]\n", true},
		{"an extractor", minimal + "  images: [{name: more, expression: \"[request.userInfo.username]\"}]\n", true},
		{"an attestor", strings.Replace(minimal, "subject: ann@example.com", "issuerRegExp: '', subjectExpression: request.userInfo.username", 1), true},
		{"the name of an attestation", strings.Replace(minimal, "{name: scan,", "{name: userInfo,", 1), false},
	} {
		p, err := compile(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if got := p.Unscanned != ""; got != c.omitted {
			t.Errorf("%s: omitted %t (%s), want %t", c.reason, got, p.Unscanned, c.omitted)
		}
	}
}
