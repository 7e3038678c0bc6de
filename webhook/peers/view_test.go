package peers_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// viewer returns the requested target, in a size that a test sets.
type viewer struct {
	size  int
	asked atomic.Int64
}

func (v *viewer) View(_ context.Context, target string) (int, []byte) {
	v.asked.Add(1)
	if target == "/none" {
		return http.StatusNotFound, []byte("there is none")
	}
	return http.StatusOK, []byte(target + strings.Repeat(".", v.size))
}

func viewHandler(t testing.TB, key []byte, of peers.Viewer) *peers.Handler {
	t.Helper()
	return testkit.Must(peers.NewViewHandler(peers.ViewConfig{Key: key, Viewer: of}))(t)
}

// TestView: a view requires the key of the replicas.
func TestView(t *testing.T) {
	const target = "/api/v1/images?q=a%20b"
	for _, c := range []struct {
		reason  string
		handler func(*viewer) http.Handler
		target  string
		size    int
		status  int // 0: an error
		asked   int64
	}{
		{"a replica", func(v *viewer) http.Handler { return viewHandler(t, ourKey, v) }, target, 0, http.StatusOK, 1},
		{"a missing path", func(v *viewer) http.Handler { return viewHandler(t, ourKey, v) }, "/none", 0, http.StatusNotFound, 1},
		{"much", func(v *viewer) http.Handler { return viewHandler(t, ourKey, v) }, target, 5 << 20, http.StatusOK, 1},
		{"more than is shown", func(v *viewer) http.Handler { return viewHandler(t, ourKey, v) }, target, 7 << 20, 0, 1},
		{"a target that is too long", func(v *viewer) http.Handler { return viewHandler(t, ourKey, v) }, "/" + strings.Repeat("a", 9<<10), 0, 0, 0},
		{"a replica with another key", func(v *viewer) http.Handler { return viewHandler(t, otherKey, v) }, target, 0, 0, 0},
		{"the endpoint for facts", func(*viewer) http.Handler { return path(t, ourKey, memory{}) }, target, 0, 0, 0},
		{"an answer that was changed", func(v *viewer) http.Handler {
			return tampering{viewHandler(t, ourKey, v), func(_ http.Header, b []byte) []byte { return bytes.Replace(b, []byte("200"), []byte("201"), 1) }}
		}, target, 0, 0, 1},
		{"a MAC of facts", func(v *viewer) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // the question of another endpoint
				signedHeader := r.Header.Get("Quaymaster-Question")
				forged := sealed(ourKey, signedHeader, r.Body)
				forged.URL.Path = r.URL.Path
				viewHandler(t, ourKey, v).ServeHTTP(w, forged)
			})
		}, target, 0, 0, 0},
	} {
		t.Run(c.reason, func(t *testing.T) {
			shows := &viewer{size: c.size}
			r := serve(t, c.handler(shows))
			view, err := client(t, ourKey, nil, r).View(t.Context(), r.address(), c.target)
			if (err == nil) != (c.status != 0) || view.Status != c.status || shows.asked.Load() != c.asked {
				t.Fatalf("status %d, %v, asked %d times; want %d and %d", view.Status, err, shows.asked.Load(), c.status, c.asked)
			}
			if c.status == http.StatusOK && string(view.Body) != c.target+strings.Repeat(".", c.size) {
				t.Errorf("it shows %.100s", view.Body)
			}
		})
	}
}

// TestViewOfNoReplica: an address of no replica is not queried.
func TestViewOfNoReplica(t *testing.T) {
	shows := &viewer{}
	r := serve(t, viewHandler(t, ourKey, shows))
	far := testkit.Must(peers.New(peers.Config{Key: ourKey, Members: members{}, Roots: r.roots(), ServerName: "example.com"}))(t)
	t.Cleanup(far.Close)
	for reason, member := range map[string]string{"on this machine, where none is": r.address(), "no port": "10.0.0.1", "nothing": ""} {
		if _, err := far.View(t.Context(), member, "/"); err == nil || shows.asked.Load() > 0 {
			t.Errorf("%s: %v, asked %d times", reason, err, shows.asked.Load())
		}
	}
	gone := client(t, ourKey, nil, r)
	r.Close()
	if _, err := gone.View(t.Context(), r.address(), "/"); err == nil {
		t.Error("a stopped replica answers")
	}
	for reason, config := range map[string]peers.ViewConfig{"no key": {Viewer: shows}, "no viewer": {Key: ourKey}} {
		if _, err := peers.NewViewHandler(config); err == nil {
			t.Errorf("%s: an endpoint is made", reason)
		}
	}
	w := httptest.NewRecorder()
	viewHandler(t, ourKey, shows).ServeHTTP(w, httptest.NewRequest(http.MethodPost, peers.ViewPath, strings.NewReader(`{"target":"/"}`)))
	if w.Code != http.StatusForbidden {
		t.Errorf("a request without a MAC: %d", w.Code)
	}
}
