package gateway

import (
	"strings"
	"testing"
)

// TestStandaloneWithoutReport: a process that only admits serves no dashboard and answers
// all the same.
func TestStandaloneWithoutReport(t *testing.T) {
	d := newEnv(t)
	for _, row := range []struct {
		roles string
		shown bool
	}{{"admission", false}, {"admission, report", true}} {
		r := d.start(t, "roles: ["+row.roles+"]\ndashboard: {address: 'localhost:0'}\n")
		if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.signed.Name); !got.Allowed {
			t.Errorf("%s: a signed image is denied: %s", row.roles, got.Status.Message)
		}
		if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.unsigned.Name); got.Allowed {
			t.Errorf("%s: an unsigned image is admitted", row.roles)
		}
		if shown := strings.Contains(r.log.String(), `"msg":"dashboard"`); shown != row.shown {
			t.Errorf("%s: a dashboard is served: %t", row.roles, shown)
		}
		if err := r.end(t); err != nil {
			t.Errorf("%s: %v", row.roles, err)
		}
	}
}
