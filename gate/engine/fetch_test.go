package engine

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
)

// TestTexts: a policy at an address is fetched once, over TLS alone, and what does
// not answer is left alone for a while.
func TestTexts(t *testing.T) {
	var asked atomic.Int64
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/policy":
			_, _ = fmt.Fprint(w, "a policy")
		case "/moved":
			http.Redirect(w, r, "/policy", http.StatusFound)
		case "/plain":
			http.Redirect(w, r, plain.URL, http.StatusFound)
		case "/large":
			_, _ = fmt.Fprint(w, strings.Repeat("a", maxFetched+1))
		case "/wrong":
			_, _ = fmt.Fprint(w, "down for maintenance")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	made, err := newTexts(server.Client().Transport)
	if err != nil {
		t.Fatal(err)
	}
	var fetcher sigstore.Fetcher = made
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("a policy")))
	for _, c := range []struct {
		reason, path, says string
		asked              int64
	}{
		{"a policy", "/policy", "", 1},
		{"the same again", "/policy", "", 0},
		{"one that has moved", "/moved", "", 2},
		{"one that has moved to where there is no TLS", "/plain", "without TLS", 1},
		{"one above the bound", "/large", "1048576", 1},
		{"one that is not there", "/none", "404", 1},
		{"the same, a moment later", "/none", "404", 0},
		{"one that is another", "/wrong", "has the SHA-256", 1},
		{"the same, a moment later", "/wrong", "has the SHA-256", 0},
	} {
		before := asked.Load()
		content, err := fetcher.Fetch(t.Context(), server.URL+c.path, sum)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) || err == nil && string(content) != "a policy" {
			t.Errorf("%s: %q, %v", c.reason, content, err)
		}
		if n := asked.Load() - before; n != c.asked {
			t.Errorf("%s: asked %d times, want %d", c.reason, n, c.asked)
		}
	}
	for key, have := range made.known {
		if have.err == nil && string(have.content) != "a policy" {
			t.Errorf("%s is remembered for good: %q", key, have.content)
		}
	}
}
