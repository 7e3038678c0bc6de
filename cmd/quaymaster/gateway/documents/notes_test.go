package documents

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/policy"
)

// namedRule is a rule that pins in objects of a kind, which it names itself.
type namedRule struct{ policy.Rule }

func (namedRule) PinsNamed() bool { return true }
func (namedRule) Targets() []policy.Target {
	return []policy.Target{{Group: "apps", Version: "*", Kind: "Deployment"}}
}
func (namedRule) ImagePatterns() ([]string, bool) { return nil, false }

// TestNotes: the condition of a policy that pins in other objects than pods says so, or that
// the settings keep it from that.
func TestNotes(t *testing.T) {
	pins, follows := &policy.Policy{Rules: []policy.Rule{namedRule{}}}, &policy.Policy{}
	for _, c := range []struct {
		reason   string
		settings config.Webhooks
		policy   *policy.Policy
		want     string
	}{
		{"it pins", config.Webhooks{}, pins, "and so pins"},
		{"it may not", config.Webhooks{OnlyPods: true}, pins, "webhooks.onlyPods"},
		{"it does not", config.Webhooks{}, follows, ""},
		{"it does not and may not", config.Webhooks{OnlyPods: true}, follows, ""},
	} {
		got := strings.Join(notesOf(c.settings.OnlyPods, c.policy), " ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
