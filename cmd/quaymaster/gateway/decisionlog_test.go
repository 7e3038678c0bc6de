package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// TestDecisionLog: the log has the endpoints' decisions, with requester and reasons. It is signed,
// and its folder has the public key; a webhook receives the same lines.
func TestDecisionLog(t *testing.T) {
	d := newEnv(t)
	var mu sync.Mutex
	var posted strings.Builder
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&posted, r.Body)
	}))
	t.Cleanup(collector.Close)
	g := d.start(t, "decisionLog: {folder: FOLDER/log, fsync: always, webhook: {url: '"+collector.URL+"'}}\n")
	for _, each := range []struct {
		image   string
		allowed bool
	}{{d.signed.ByDigest(), true}, {d.unsigned.ByDigest(), false}} {
		if got, err := g.ask("/validate", "Pod", "shop", each.image); err != nil || got.Allowed != each.allowed {
			t.Fatalf("%s: %+v, %v", each.image, got, err)
		}
	}
	folder := filepath.Join(d.folder, "log")
	answers := map[string]decisionlog.Decision{} // before the end: it is on disk when the endpoint answers
	for line, err := range decisionlog.Read(folder, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if line.Decision != nil && line.Decision.Image != nil {
			answers[line.Decision.Image.Written] = *line.Decision
		}
	}
	if got := answers[d.unsigned.ByDigest()]; got.Result != "deny" || got.Allowed || got.User == "" || got.UID == "" || len(got.Rules) != 1 || got.Rules[0].Hash == "" || len(got.Reasons) == 0 {
		t.Errorf("the denied image: %+v", got)
	}
	if got := answers[d.signed.ByDigest()]; got.Result != "allow" || !got.Allowed || len(got.Rules) != 1 || len(got.Rules[0].Proofs) != 1 || got.Rules[0].Proofs[0].Key == "" {
		t.Errorf("the allowed image: %+v", got)
	}
	_, scraped := get(t, "http://"+g.plain+"/metrics")
	for _, want := range []string{"quaymaster_decision_log_records_total 2", "quaymaster_decision_log_lost_total 0", `quaymaster_decision_log_sink_dropped_total{sink="webhook"} 0`} {
		if !strings.Contains(scraped, want) {
			t.Errorf("there is no %s", want)
		}
	}
	if err := g.end(t); err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join(folder, "checkpoint.key.pub"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := decisionlog.ParsePublicKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	var seen [][]byte
	for line := range strings.Lines(posted.String()) {
		seen = append(seen, []byte(strings.TrimSuffix(line, "\n")))
	}
	got, err := decisionlog.Verify(folder, decisionlog.VerifyOptions{Keys: keys, Anchors: seen})
	if err != nil || !got.Closed || got.Decisions != 2 || got.Lost != 0 || uint64(len(seen)) != got.Lines {
		t.Errorf("%d lines were posted: %+v, %v", len(seen), got, err)
	}
}

// TestDecisionLogGoesOn: another start goes on with the log and its key.
func TestDecisionLogGoesOn(t *testing.T) {
	d := newEnv(t)
	for range 2 {
		g := d.start(t, "decisionLog: {folder: FOLDER/log, keyFile: FOLDER/keys/log.key}\n")
		if _, err := g.ask("/validate", "Pod", "shop", d.signed.ByDigest()); err != nil {
			t.Fatal(err)
		}
		if err := g.end(t); err != nil {
			t.Fatal(err)
		}
	}
	got, err := decisionlog.Verify(filepath.Join(d.folder, "log"), decisionlog.VerifyOptions{})
	if err != nil || got.Decisions != 2 || len(got.Signers) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}
