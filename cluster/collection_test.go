package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// scripted is an API server with lists and watches that a test writes.
type scripted struct {
	mu      sync.Mutex
	pages   map[string]string // by continue token
	refused int               // status code of lists; 0: answered
	lists   []string          // continue tokens that were asked for
	watches []string          // resource versions
	events  chan string       // of watches; "end" ends one, "410" expires it
	gone    bool              // watches are refused as expired
	blind   bool              // watches are forbidden
}

func newScripted() *scripted {
	return &scripted{pages: map[string]string{}, events: make(chan string, 100)}
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	status := func(code int, reason string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	}
	s.mu.Lock()
	if r.URL.Path != "/apis/acme.example/v1/namespaces/shop/things" {
		s.mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, status(http.StatusNotFound, "NotFound"))
		return
	}
	query := r.URL.Query()
	if query.Get("watch") == "" {
		token := query.Get("continue")
		s.lists = append(s.lists, token)
		page, code := s.pages[token], s.refused
		s.mu.Unlock()
		if code != 0 {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, status(code, map[int]string{http.StatusForbidden: "Forbidden", http.StatusInternalServerError: "InternalError"}[code]))
			return
		}
		_, _ = fmt.Fprint(w, page)
		return
	}
	s.watches = append(s.watches, query.Get("resourceVersion"))
	gone, blind := s.gone, s.blind
	s.gone = false
	s.mu.Unlock()
	if blind {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, status(http.StatusForbidden, "Forbidden"))
		return
	}
	if gone {
		w.WriteHeader(http.StatusGone)
		_, _ = fmt.Fprint(w, status(http.StatusGone, "Expired"))
		return
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-s.events:
			switch event {
			case "end":
				return
			case "410":
				event = `{"type":"ERROR","object":` + status(http.StatusGone, "Expired") + `}`
			}
			_, _ = fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		}
	}
}

func (s *scripted) page(token, next, version string, items ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[token] = fmt.Sprintf(`{"apiVersion":"acme.example/v1","kind":"ThingList","metadata":{"continue":%q,"resourceVersion":%q},"items":[%s]}`, next, version, strings.Join(items, ","))
}

func (s *scripted) refuse(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = code
}

func (s *scripted) asked() (lists, watches []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lists...), append([]string(nil), s.watches...)
}

func thing(name, version string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop","resourceVersion":%q,"managedFields":[{"manager":"kubectl"}]},"spec":{"size":1}}`, name, version)
}

func event(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":"acme.example/v1","kind":"Thing",%s}`, kind, thing(name, version)[1:])
}

func clientOf(t *testing.T, handler http.Handler) *cluster.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n", server.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: path, Version: "test", QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// heard is a call of a Collection's callback.
type heard struct {
	names  string
	kinds  string
	err    error
	fields bool // managedFields were included
}

// listen runs a Collection and returns its reports.
func listen(t *testing.T, api http.Handler, most int) <-chan heard {
	t.Helper()
	said := make(chan heard, 100)
	c, err := cluster.NewCollection(cluster.CollectionOptions{
		Client: clientOf(t, api), At: cluster.Place{Group: "acme.example", Version: "v1", Resource: "things", Namespace: "shop"}, Most: most,
		Weigh: func(object any) int { text, _ := json.Marshal(object); return len(text) },
		Changed: func(objects []any) {
			var h heard
			for _, object := range objects {
				content := object.(map[string]any)
				metadata := content["metadata"].(map[string]any)
				h.names += metadata["name"].(string)
				h.kinds = fmt.Sprint(content["apiVersion"], " ", content["kind"])
				h.fields = h.fields || metadata["managedFields"] != nil
			}
			said <- h
		},
		Failed: func(err error) { said <- heard{err: err} }, Pause: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return said
}

func next(t *testing.T, said <-chan heard) heard {
	t.Helper()
	select {
	case h := <-said:
		return h
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is reported")
		return heard{}
	}
}

// until waits for names; what comes before may be a part of it.
func until(t *testing.T, said <-chan heard, names string) {
	t.Helper()
	for {
		h := next(t, said)
		if h.err != nil {
			t.Fatalf("%v; want %q", h.err, names)
		}
		if h.names == names {
			return
		}
	}
}

func TestCollection(t *testing.T) {
	api := newScripted()
	api.page("", "two", "", thing("b", "1"), thing("d", "2"))
	api.page("two", "", "7", thing("a", "3"))
	said := listen(t, api, 1<<20)
	if h := next(t, said); h.names != "abd" || h.kinds != "acme.example/v1 Thing" || h.fields || h.err != nil {
		t.Fatalf("the pages: %+v", h)
	}
	api.events <- event("ADDED", "c", "8")
	api.events <- event("DELETED", "b", "9")
	until(t, said, "acd")
	api.events <- `{"type":"BOOKMARK","object":{"apiVersion":"acme.example/v1","kind":"Thing","metadata":{"resourceVersion":"20"}}}`
	api.events <- "end"
	api.events <- event("ADDED", "e", "21")
	until(t, said, "acde")
	lists, watches := api.asked()
	if len(lists) != 2 || len(watches) != 2 || watches[0] != "7" || watches[1] != "20" {
		t.Errorf("lists %q, watches %q: want the watch opened again where it ended", lists, watches)
	}
	// After an expired version the list is repeated, and only the difference is reported.
	api.page("", "", "30", thing("z", "30"))
	api.events <- "410"
	until(t, said, "z")
	lists, watches = api.asked()
	if len(lists) != 3 || watches[len(watches)-1] == "" {
		t.Errorf("lists %q, watches %q", lists, watches)
	}
}

func TestCollectionExpiredAtOnce(t *testing.T) {
	api := newScripted()
	api.gone = true
	api.page("", "", "7", thing("a", "3"))
	said := listen(t, api, 1<<20)
	until(t, said, "a")
	if lists, _ := api.asked(); len(lists) != 2 {
		t.Errorf("lists %q", lists)
	}
}

// TestCollectionWithoutWatch: a list that cannot be followed is no value, since it is out of date
// from the first change on.
func TestCollectionWithoutWatch(t *testing.T) {
	api := newScripted()
	api.blind = true
	api.page("", "", "7", thing("a", "3"))
	said := listen(t, api, 1<<20)
	for range 3 {
		h := next(t, said)
		if h.err == nil || !errors.Is(h.err, cluster.ErrForbidden) || !strings.Contains(h.err.Error(), "grant its service account watch on things.acme.example") {
			t.Fatalf("a list without a watch: %+v", h)
		}
	}
	api.mu.Lock()
	api.blind = false
	api.mu.Unlock()
	h := next(t, said)
	for h.err != nil {
		h = next(t, said)
	}
	if h.names != "a" {
		t.Errorf("with a watch: %+v", h)
	}
}

func TestCollectionFails(t *testing.T) {
	for _, row := range []struct {
		name    string
		prepare func(*scripted)
		is      error
		mend    func(*scripted)
	}{
		{"forbidden", func(s *scripted) { s.refuse(http.StatusForbidden) }, cluster.ErrForbidden, func(s *scripted) { s.refuse(0) }},
		{"failing", func(s *scripted) { s.refuse(http.StatusInternalServerError) }, cluster.ErrUnavailable, func(s *scripted) { s.refuse(0) }},
		{"no JSON", func(s *scripted) { s.pages[""] = "<html>" }, cluster.ErrUnavailable, func(*scripted) {}},
		{"no version", func(s *scripted) { s.page("", "", "", thing("a", "1")) }, cluster.ErrUnavailable, func(*scripted) {}},
		{"an item that is no object", func(s *scripted) { s.page("", "", "1", `"a"`) }, cluster.ErrUnavailable, func(*scripted) {}},
		{"too much", func(s *scripted) { s.page("", "", "1", thing(strings.Repeat("a", 2000), "1")) }, nil, func(*scripted) {}},
		{"too much in the second page", func(s *scripted) {
			s.page("", "two", "", thing("a", "1"))
			s.page("two", "", "1", thing(strings.Repeat("a", 2000), "1"))
		}, nil, func(*scripted) {}},
		{"too much comes", func(s *scripted) {
			s.page("", "", "1")
			s.events <- event("ADDED", strings.Repeat("a", 2000), "8")
		}, nil, func(*scripted) {}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			api := newScripted()
			api.page("", "", "7", thing("a", "3"))
			row.prepare(api)
			said := listen(t, api, 1000)
			h := next(t, said)
			if h.err == nil && h.names == "" {
				h = next(t, said) // nothing was there before too much came
			}
			exceeded := (*limit.ExceededError)(nil)
			if h.err == nil || row.is != nil && !errors.Is(h.err, row.is) || row.is == nil && !errors.As(h.err, &exceeded) {
				t.Fatalf("%+v, want %v", h, row.is)
			}
			row.mend(api)
			api.page("", "", "9", thing("b", "3"))
			for h.names != "b" {
				h = next(t, said)
			}
		})
	}
}

func TestCollectionOptions(t *testing.T) {
	whole := cluster.CollectionOptions{
		Client: clientOf(t, newScripted()), At: cluster.Place{Version: "v1", Resource: "pods"}, Most: 1,
		Weigh: func(any) int { return 1 }, Changed: func([]any) {}, Failed: func(error) {},
	}
	if _, err := cluster.NewCollection(whole); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*cluster.CollectionOptions){
		"no client":       func(o *cluster.CollectionOptions) { o.Client = nil },
		"no bound":        func(o *cluster.CollectionOptions) { o.Most = 0 },
		"no callback":     func(o *cluster.CollectionOptions) { o.Changed = nil },
		"a name":          func(o *cluster.CollectionOptions) { o.At.Name = "a" },
		"a subresource":   func(o *cluster.CollectionOptions) { o.At.Resource = "pods/log" },
		"Secrets":         func(o *cluster.CollectionOptions) { o.At.Resource = "secrets" },
		"leads elsewhere": func(o *cluster.CollectionOptions) { o.At.Namespace = "../.." },
	} {
		o := whole
		spoil(&o)
		if _, err := cluster.NewCollection(o); err == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

func TestCall(t *testing.T) {
	api := newScripted()
	api.page("", "", "7", thing("a", "3"))
	client := clientOf(t, api)
	const things = "/apis/acme.example/v1/namespaces/shop/things"
	answer, err := client.Call(t.Context(), http.MethodGet, things+"?limit=5", nil)
	if err != nil || answer.(map[string]any)["items"].([]any)[0].(map[string]any)["spec"].(map[string]any)["size"] != int64(1) {
		t.Errorf("%v %v", answer, err)
	}
	// What only has the name of Secrets is asked for.
	for _, at := range []string{"/api/v1/namespaces/secrets/pods", "/api/v1/namespaces/shop/configmaps/secrets", "/apis/acme.example/v1/secrets", "/version"} {
		if _, err := client.Call(t.Context(), http.MethodGet, at, nil); !errors.Is(err, cluster.ErrNotFound) {
			t.Errorf("%s: %v", at, err)
		}
	}
	api.refuse(http.StatusForbidden)
	if _, err := client.Call(t.Context(), http.MethodGet, things, nil); !errors.Is(err, cluster.ErrForbidden) {
		t.Errorf("a forbidden resource: %v", err)
	}
	if _, err := client.Call(t.Context(), http.MethodGet, "/apis/acme.example/v1/others", nil); !errors.Is(err, cluster.ErrNotFound) {
		t.Errorf("a missing resource: %v", err)
	}
	api.refuse(0)
	api.mu.Lock()
	api.pages[""] = `"` + strings.Repeat("a", 9<<20) + `"`
	api.mu.Unlock()
	var exceeded *limit.ExceededError
	if _, err := client.Call(t.Context(), http.MethodGet, things, nil); !errors.As(err, &exceeded) {
		t.Errorf("a list that is too large: %v", err)
	}
	for _, row := range []struct{ method, at string }{
		{http.MethodGet, "https://elsewhere.example/api/v1/pods"}, {http.MethodGet, "//elsewhere.example/api/v1/pods"}, {http.MethodGet, "/metrics"},
		{http.MethodGet, "/api/v1/../../metrics"}, {http.MethodGet, "/api/v1/%2e%2e/nodes"}, {http.MethodDelete, "/api/v1/pods"},
		{http.MethodPost, "/api/v1/namespaces"}, {http.MethodGet, "/api/v1/secrets"}, {http.MethodGet, "/api/v1/namespaces/shop/secrets/pull"},
		{http.MethodGet, "/api/v1/watch/namespaces/shop/secrets"}, {http.MethodGet, "/api/v1/watch/secrets"}, {http.MethodPost, "/apis/apps/v1/reviews"},
	} {
		lists, _ := api.asked()
		if _, err := client.Call(t.Context(), row.method, row.at, nil); err == nil {
			t.Errorf("%s %s is asked", row.method, row.at)
		}
		if after, _ := api.asked(); len(after) != len(lists) {
			t.Errorf("%s %s was sent", row.method, row.at)
		}
	}
}
