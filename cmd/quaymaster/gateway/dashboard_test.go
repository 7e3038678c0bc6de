package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/report/inventory"
)

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
			d := newEnv(t)
			settings := "dashboard: {address: '127.0.0.1:0'}\n" + row.settings
			first := d.start(t, settings)
			first.mustAsk(t, "/validate", "Pod", "shop", d.signed.ByDigest())
			first.mustAsk(t, "/validate", "Pod", "shop", d.unsigned.ByDigest())
			if err := first.end(t); err != nil {
				t.Fatal(err)
			}
			second := d.start(t, settings)
			address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
			testkit.Eventually(t, func() error {
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
