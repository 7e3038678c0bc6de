package distribution

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// gangway is a proxy of a registry and records its requests.
type gangway struct {
	server *httptest.Server

	mu    sync.Mutex
	calls []call
}

// call is a request and the status of its answer.
type call struct {
	request string // method and path
	query   string
	header  http.Header
	status  int
}

// scheme is the word before the credential; empty without one.
func (c call) scheme() string {
	scheme, _, _ := strings.Cut(c.header.Get("Authorization"), " ")
	return scheme
}

func openGangway(t *testing.T, registry string) *gangway {
	t.Helper()
	g := &gangway{}
	target := &url.URL{Scheme: "http", Host: registry}
	g.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(q *httputil.ProxyRequest) {
			q.SetURL(target)
			q.Out.Host = q.In.Host // the registry makes addresses of it
		},
		ModifyResponse: func(r *http.Response) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			q := r.Request
			g.calls = append(g.calls, call{q.Method + " " + q.URL.Path, q.URL.RawQuery, q.Header.Clone(), r.StatusCode})
			return nil
		},
	})
	t.Cleanup(g.server.Close)
	return g
}

func (g *gangway) host() string { return strings.TrimPrefix(g.server.URL, "http://") }

// take returns the calls since the last take.
func (g *gangway) take() []call {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := g.calls
	g.calls = nil
	return calls
}
