package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/report/inventory"
)

// TestDashboardSettings: nothing shows every namespace to everybody.
func TestDashboardSettings(t *testing.T) {
	for _, row := range []struct {
		reason     string
		settings   Dashboard
		standalone bool
		wrong      int
	}{
		{"nothing is said", Dashboard{}, true, 0},
		{"another port of loopback", Dashboard{Address: "127.0.0.1:9000"}, true, 0},
		{"loopback of IPv6", Dashboard{Address: "[::1]:9000"}, true, 0},
		{"by name", Dashboard{Address: "localhost:9000"}, true, 0},
		{"everywhere, for tokens of a file", Dashboard{Address: ":9000", Tokens: "f"}, true, 0},
		{"everywhere, for whom the cluster lets", Dashboard{Address: "0.0.0.0:9000", TokenReview: true}, false, 0},
		{"everywhere, for everybody", Dashboard{Address: ":9000"}, false, 1},
		{"everywhere by a name that may be anything", Dashboard{Address: "localhost.example:9000"}, false, 1},
		{"no port", Dashboard{Address: "127.0.0.1"}, false, 1},
		{"a cluster is asked without one", Dashboard{TokenReview: true}, true, 1},
		{"two ways", Dashboard{Tokens: "f", TokenReview: true}, false, 1},
		{"audiences of no token", Dashboard{Audiences: []string{"a"}}, false, 1},
		{"disabled, and where it is", Dashboard{Disabled: true, Address: ":9000"}, false, 1},
		{"disabled", Dashboard{Disabled: true}, false, 0},
	} {
		var found complaints
		row.settings.fill()
		row.settings.check(row.standalone, &found)
		if len(found) != row.wrong {
			t.Errorf("%s: %v", row.reason, found)
		}
	}
}

// TestDashboardRemembers: what a replica decided before it was started anew is shown, where
// it keeps a decision log, and is not shown where it keeps none.
func TestDashboardRemembers(t *testing.T) {
	for _, row := range []struct {
		reason, settings string
		images           int
	}{
		{"with a log", "decisionLog: {folder: FOLDER/log}\n", 2},
		{"without one", "", 0},
	} {
		t.Run(row.reason, func(t *testing.T) {
			d := newDock(t)
			settings := "dashboard: {address: '127.0.0.1:0'}\n" + row.settings
			first := d.start(t, settings)
			first.mustAsk(t, "/validate", "Pod", "shop", d.signed.ByDigest())
			first.mustAsk(t, "/validate", "Pod", "shop", d.unsigned.ByDigest())
			if err := first.end(t); err != nil {
				t.Fatal(err)
			}
			second := d.start(t, settings)
			address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
			eventually(t, func() error {
				at := address.FindString(second.log.String())
				if at == "" || row.images > 0 && !strings.Contains(second.log.String(), "the dashboard remembers") {
					return errors.New("the dashboard is not there yet")
				}
				_, text := get(t, at+"api/v1/images")
				var shown struct {
					Total    int
					Verdicts inventory.Tally
				}
				if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.Total != row.images {
					return fmt.Errorf("%s: %w", text, err)
				}
				if row.images > 0 && (shown.Verdicts.Allowed != 1 || shown.Verdicts.Denied != 1) {
					return fmt.Errorf("the verdicts are %+v", shown.Verdicts)
				}
				return nil
			})
		})
	}
}
