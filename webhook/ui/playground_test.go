package ui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/webhook/ui"
)

// bench is a Playground that answers with the path and the caller.
type bench struct{}

func (bench) Serve(w http.ResponseWriter, r *http.Request, caller string) {
	fmt.Fprintf(w, "%s %s by %q", r.Method, r.URL.Path, caller)
}

// TestPlayground: off, there is none; on, its page is public, and everything else is for the users of the
// dashboard.
func TestPlayground(t *testing.T) {
	made := func(config ui.Config, with ...ui.Option) http.Handler {
		config.Inventory = filled(t)
		h, err := ui.New(config, with...)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	off := made(ui.Config{}, ui.WithoutTokens())
	local := made(ui.Config{}, ui.WithoutTokens(), ui.WithPlayground(bench{}))
	closed := made(ui.Config{Authenticator: directory{}}, ui.WithAuthorizer(directory{}), ui.WithPlayground(bench{}))
	for _, row := range []struct {
		reason       string
		handler      http.Handler
		method, path string
		headers      []string
		status       int
		has          string
	}{
		{"off", off, "GET", "/playground/", nil, 404, ""},
		{"off, an evaluation", off, "POST", "/playground/api/v1/evaluate", nil, 405, "read only"},
		{"the page", local, "GET", "/playground/", nil, 200, `GET / by ""`},
		{"without the slash", local, "GET", "/playground", nil, 308, ""},
		{"an evaluation", local, "POST", "/playground/api/v1/evaluate", nil, 200, `POST /api/v1/evaluate by ""`},
		{"by a foreign name", local, "POST", "/playground/api/v1/evaluate", []string{"Host", "evil.example"}, 421, "loopback only"},
		{"the dashboard stays read only", local, "POST", "/api/v1/images", nil, 405, "read only"},
		{"a reader", closed, "POST", "/playground/api/v1/evaluate", []string{"Authorization", "Bearer of-reader"}, 200, `by "reader"`},
		{"permission denied", closed, "POST", "/playground/api/v1/evaluate", []string{"Authorization", "Bearer of-stranger"}, 403, "forbidden"},
		{"no token", closed, "POST", "/playground/api/v1/evaluate", nil, 401, "unauthenticated"},
		{"no token, another way to write it", closed, "POST", "/playground/./api/v1/evaluate", nil, 401, "unauthenticated"},
		{"no token, examples", closed, "GET", "/playground/api/v1/examples", nil, 401, "unauthenticated"},
		{"no token, the page", closed, "GET", "/playground/", nil, 200, `GET / by ""`},
		{"no token, a script", closed, "GET", "/playground/assets/app.css", nil, 200, "GET /assets/app.css"},
	} {
		r := httptest.NewRequest(row.method, "http://localhost:8001"+row.path, http.NoBody)
		for n := 0; n+1 < len(row.headers); n += 2 {
			if row.headers[n] == "Host" {
				r.Host = row.headers[n+1]
			} else {
				r.Header.Set(row.headers[n], row.headers[n+1])
			}
		}
		w := httptest.NewRecorder()
		row.handler.ServeHTTP(w, r)
		if w.Code != row.status || !strings.Contains(w.Body.String(), row.has) {
			t.Errorf("%s: %d, want %d with %q: %.200s", row.reason, w.Code, row.status, row.has, w.Body)
		}
	}
	for handler, linked := range map[http.Handler]bool{off: false, local: true} {
		if page := text(t, get(handler, "/")); strings.Contains(page, `href="/playground/"`) != linked {
			t.Errorf("the menu has a playground, want %t", linked)
		}
	}
	if _, err := ui.New(ui.Config{Inventory: filled(t)}, ui.WithoutTokens(), ui.WithPlayground(nil)); err == nil {
		t.Error("no playground, and it is served")
	}
}
