package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// leading asks another handler, or fails.
type leading struct {
	to     *ui.Handler
	status int
	err    error
	asked  int
}

func (l *leading) View(ctx context.Context, target string) (int, []byte, error) {
	l.asked++
	switch {
	case l.err != nil:
		return 0, nil, l.err
	case l.status != 0:
		return l.status, []byte("{}"), nil
	}
	status, body := l.to.View(ctx, target)
	return status, body, nil
}

// of is a replica that knows one image.
func of(t *testing.T, replica, name string, options ...ui.Option) *ui.Handler {
	t.Helper()
	known, err := inventory.New(inventory.Options{Replica: replica})
	if err != nil {
		t.Fatal(err)
	}
	known.Add(report.Occasion{Time: time.Now(), Process: report.ProcessScan, Allowed: true}, report.Record{Result: gate.Allow, Images: []report.Image{{
		Reference: name, Written: name, Result: gate.Allow, Matched: true,
	}}}, report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web"})
	config := ui.Config{Inventory: known, Authenticator: directory{}}
	h, err := ui.New(config, append([]ui.Option{ui.WithAuthorizer(directory{})}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestLeader: a replica that does not lead shows the leader's data to authorised users,
// and its own, with a note, where there are none.
func TestLeader(t *testing.T) {
	leader := of(t, "leader", "led.example/app:1")
	for _, row := range []struct {
		reason, path, token string
		leader              *leading
		code, asked         int
		replica, alone      string
		has, lacks          string
	}{
		{"the leader's images", "images", "of-reader", &leading{to: leader}, 200, 1, "leader", "", "led.example", "own.example"},
		{"its overview", "overview?span=1h", "of-reader", &leading{to: leader}, 200, 1, "leader", "", `"workloads":1`, "own.example"},
		{"with the question's parameters", "images?q=nothing", "of-reader", &leading{to: leader}, 200, 1, "leader", "", `"total":0`, "own.example"},
		{"this replica leads", "images", "of-reader", &leading{err: ui.ErrLeads}, 200, 1, "own", "", "own.example", "led.example"},
		{"the leader is dead", "images", "of-reader", &leading{err: errors.New("the replica that leads, a, does not answer")}, 200, 1, "own", "the replica that leads, a, does not answer", "own.example", ""},
		{"and its overview has a note", "overview", "of-reader", &leading{err: errors.New("gone")}, 200, 1, "own", "gone", `"workloads":1`, ""},
		{"and its decisions", "decisions", "of-reader", &leading{err: errors.New("gone")}, 200, 1, "own", "gone", "", ""},
		{"and its policies", "policies", "of-reader", &leading{err: errors.New("gone")}, 200, 1, "own", "gone", "", ""},
		{"the leader is busy", "images", "of-reader", &leading{status: 503}, 200, 1, "own", "overloaded", "own.example", ""},
		{"the leader has no such endpoint", "images", "of-reader", &leading{status: 404}, 200, 1, "own", "no such entry", "own.example", ""},
		{"an unknown image", "images/none", "of-reader", &leading{to: leader}, 404, 1, "", "", "not-found", ""},
		{"a question that makes no sense is not passed on", "images?x=1", "of-reader", &leading{to: leader}, 400, 0, "", "", "malformed", ""},
		{"without the right to read", "images", "of-stranger", &leading{to: leader}, 403, 0, "", "", "forbidden", "led.example"},
		{"an unknown token", "images", "other", &leading{to: leader}, 401, 0, "", "", "unauthenticated", "led.example"},
	} {
		h := of(t, "own", "own.example/app:1", ui.WithLeader(row.leader))
		got := get(h, "/api/v1/"+row.path, "Authorization", "Bearer "+row.token)
		var body struct{ About inventory.About }
		if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil {
			t.Fatalf("%s: %v in %s", row.reason, err, got.Body)
		}
		if got.Code != row.code || row.leader.asked != row.asked || body.About.Replica != row.replica || !strings.Contains(body.About.Alone, row.alone) || (row.alone == "") != (body.About.Alone == "") {
			t.Errorf("%s: %d, asked %d times, about %+v", row.reason, got.Code, row.leader.asked, body.About)
		}
		if text := got.Body.String(); !strings.Contains(text, row.has) || row.lacks != "" && strings.Contains(text, row.lacks) {
			t.Errorf("%s: want %q and not %q in %s", row.reason, row.has, row.lacks, text)
		}
	}
	if _, err := ui.New(ui.Config{Inventory: filled(t)}, ui.WithoutTokens(), ui.WithLeader(nil)); err == nil {
		t.Error("no leader is one")
	}
}

// TestView: another replica is answered without a token, about the API and nothing else,
// and is not sent on.
func TestView(t *testing.T) {
	further := &leading{err: errors.New("must not be queried")}
	h := of(t, "own", "own.example/app:1", ui.WithLeader(further))
	for target, want := range map[string]int{
		"/api/v1/images?limit=5": http.StatusOK, "/api/v1/facets": http.StatusOK, "/api/v1/images?x=1": http.StatusBadRequest, "/api/v1/none": http.StatusNotFound,
		"/": http.StatusBadRequest, "/assets/app.js": http.StatusBadRequest, "/api/v1/../../": http.StatusTemporaryRedirect, "": http.StatusBadRequest, "http://other.example/": http.StatusBadRequest,
	} {
		status, body := h.View(t.Context(), target)
		if status != want || further.asked > 0 {
			t.Errorf("%q: %d, want %d: %s", target, status, want, body)
		}
	}
}
