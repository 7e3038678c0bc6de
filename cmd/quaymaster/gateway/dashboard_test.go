package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/ui"
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
					About    inventory.About
				}
				if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.Total != row.images {
					return fmt.Errorf("%s: %w", text, err)
				}
				if shown.About.Restores != (row.settings != "") {
					return fmt.Errorf("restores is %t", shown.About.Restores)
				}
				if row.images > 0 && (shown.Verdicts.Allowed != 1 || shown.Verdicts.Denied != 1) {
					return fmt.Errorf("the verdicts are %+v", shown.Verdicts)
				}
				return nil
			})
		})
	}
}

// TestDashboardOpens: the dashboard has every loaded policy with its definition before the first
// request, and a denied request with the command that explains it.
func TestDashboardOpens(t *testing.T) {
	d := newEnv(t)
	run := d.start(t, "dashboard: {address: '127.0.0.1:0'}\n")
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	at := ""
	testkit.Eventually(t, func() error {
		at = address.FindString(run.log.String())
		if at == "" {
			return errors.New("the dashboard is not there yet")
		}
		return nil
	})
	_, text := get(t, at+"api/v1/policies")
	var list ui.PolicyList
	if err := json.Unmarshal([]byte(text), &list); err != nil || !list.Documents || len(list.Items) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, p := range list.Items {
		if p.Document == nil || p.Document.State != ui.PolicyActive || p.Document.Mode == "" || p.Document.Ready != "True" || p.Document.Source == "" {
			t.Errorf("%s: %+v", p.ID, p.Document)
		}
		if _, text := get(t, at+"api/v1/policy?id="+p.ID); !strings.Contains(text, `"definition":"`) {
			t.Errorf("%s has no definition: %s", p.ID, text)
		}
	}
	run.mustAsk(t, "/validate", "Pod", "shop", d.unsigned.ByDigest())
	testkit.Eventually(t, func() error {
		_, text := get(t, at+"api/v1/decisions")
		var decisions ui.DecisionList
		if err := json.Unmarshal([]byte(text), &decisions); err != nil || len(decisions.Items) == 0 {
			return fmt.Errorf("%s: %w", text, err)
		}
		_, text = get(t, at+"api/v1/decisions/"+decisions.Items[0].ID)
		if !strings.Contains(text, `"commands":["quaymaster explain --policy `) || !strings.Contains(text, d.unsigned.ByDigest()) || !strings.Contains(text, `"record":{`) {
			return errors.New(text)
		}
		return nil
	})
}

// TestPlaygroundServed: a gateway serves the playground if its settings have it, and no other gateway does. It
// knows none of the gateway's policies and keys.
func TestPlaygroundServed(t *testing.T) {
	d := newEnv(t)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	for _, row := range []struct {
		reason, settings string
		status           int
	}{
		{"on", "dashboard: {address: '127.0.0.1:0', playground: true}\n", http.StatusOK},
		{"off", "dashboard: {address: '127.0.0.1:0'}\n", http.StatusMethodNotAllowed},
	} {
		t.Run(row.reason, func(t *testing.T) {
			run := d.start(t, row.settings)
			at := ""
			testkit.Eventually(t, func() error {
				at = address.FindString(run.log.String())
				if at == "" {
					return errors.New("the dashboard is not there yet")
				}
				return nil
			})
			answer, err := http.Post(at+"playground/api/v1/evaluate", "application/json", strings.NewReader(`{"policies": "", "objects": ""}`))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || answer.StatusCode != row.status || (row.status == http.StatusOK) != strings.Contains(string(text), "no policy in it") {
				t.Errorf("%s, want %d: %s, %v", answer.Status, row.status, text, err)
			}
		})
	}
}
