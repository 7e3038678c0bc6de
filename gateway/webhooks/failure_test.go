package webhooks

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// TestFailurePolicyOfTheWebhooks: the webhook configuration follows the setting, and the gateway
// decides by the policies.
func TestFailurePolicyOfTheWebhooks(t *testing.T) {
	for _, row := range []struct {
		reason, setting string
		open, wantOpen  bool
		mirrors         configuration.Mirrors
	}{
		{"as policies say, closed", "", false, false, configuration.MirrorsClosed},
		{"as policies say, open", "", true, true, configuration.MirrorsClosed},
		{"Fail closes an open one", "Fail", true, false, configuration.MirrorsClosed},
		{"Ignore opens a closed one, mirrors as well", "Ignore", false, true, configuration.MirrorsOpen},
	} {
		given := []*policy.Policy{{Name: "p", Settings: policy.Settings{FailOpen: row.open}}}
		told := unanswered(row.setting, given)
		if len(told) != 1 || told[0].FailOpen != row.wantOpen || told[0].Name != "p" {
			t.Errorf("%s: %+v", row.reason, told)
		}
		if given[0].FailOpen != row.open {
			t.Errorf("%s: the gateway judges otherwise now", row.reason)
		}
		if got := unmirrored(row.setting, configuration.MirrorsClosed); got != row.mirrors {
			t.Errorf("%s: mirrors are %v, want %v", row.reason, got, row.mirrors)
		}
		if got := unmirrored(row.setting, configuration.NoMirrors); got != configuration.NoMirrors {
			t.Errorf("%s: there are mirrors now", row.reason)
		}
	}
}
