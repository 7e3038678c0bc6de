package globals

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway/calls"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// fickle is a source with responses that a test sets. The real ones are tested below and in
// package cluster.
type fickle struct {
	mu       sync.Mutex
	called   int
	fails    error
	value    any
	panics   bool
	changed  map[string]func([]any) // of watches, by the resource
	failed   map[string]func(error)
	opened   int
	watching int
}

func (f *fickle) Watch(ctx context.Context, of globalcontext.Resource, changed func([]any), failed func(error)) error {
	f.mu.Lock()
	f.changed[of.Resource], f.failed[of.Resource] = changed, failed
	f.opened++
	f.watching++
	panics := f.panics
	f.mu.Unlock()
	if panics {
		panic("a defect")
	}
	<-ctx.Done()
	f.mu.Lock()
	f.watching--
	f.mu.Unlock()
	return nil
}

func (f *fickle) Call(context.Context, *globalcontext.Call) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.called++
	return f.value, f.fails
}

func (f *fickle) set(value any, fails error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.value, f.fails = value, fails
}

func (f *fickle) seen() (called, opened, watching int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.called, f.opened, f.watching
}

func (f *fickle) watch(resource string) (func([]any), func(error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed[resource], f.failed[resource]
}

// newGlobalBench is globals over a source, and a log that a test can read.
func newGlobalBench(t *testing.T) (*Entries, *fickle, *testkit.Log) {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := globalcontext.NewCompiler(engine)
	if err != nil {
		t.Fatal(err)
	}
	source, log := &fickle{changed: map[string]func([]any){}, failed: map[string]func(error){}}, &testkit.Log{}
	return newEntries(compiler, globalcontext.NewStore(nil), source, metrics.New(metrics.Build{}), slog.New(slog.NewTextHandler(log, nil))), source, log
}

func globalDocument(name, spec string) document.Document {
	return document.Document{
		Key:  document.Key{Group: kinds.KyvernoGroup, Resource: kinds.GlobalContextResource, Name: name},
		Kind: schema.GroupVersionKind{Group: kinds.KyvernoGroup, Version: "v2beta1", Kind: "GlobalContextEntry"}, UID: "uid-" + name,
		Raw: []byte(fmt.Sprintf(`{"apiVersion":"kyverno.io/v2beta1","kind":"GlobalContextEntry","metadata":{"name":%q,"generation":3},"spec":%s}`, name, spec)),
	}
}

const (
	globalPods = `{"kubernetesResource":{"version":"v1","resource":"pods"},"projections":[{"name":"first","jmesPath":"[0]"}]}`
	globalCall = `{"apiCall":{"urlPath":"/api/v1/pods","refreshInterval":"5m","retryLimit":2}}`
)

// TestGlobalsCounted: the metrics have the number of known entries, and of failed reads.
func TestGlobalsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, source, _ := newGlobalBench(t)
		g.metrics = metrics.New(metrics.Build{})
		if err := g.metrics.Watch(metrics.Readings{GlobalContext: g.Known}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go g.Run(ctx)
		want := func(reason string, lines ...string) {
			t.Helper()
			scraped := httptest.NewRecorder()
			g.metrics.Handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			var got []string
			for line := range strings.Lines(scraped.Body.String()) {
				if strings.HasPrefix(line, "quaymaster_global_context_") {
					got = append(got, strings.TrimPrefix(strings.TrimSpace(line), "quaymaster_global_context_"))
				}
			}
			if !slices.Equal(got, lines) {
				t.Errorf("%s: %q, want %q", reason, got, lines)
			}
		}
		source.set([]any{"a"}, nil)
		g.Changed(ctx, []document.Document{globalDocument("list", globalCall), globalDocument("odd", "{}")}, nil)
		synctest.Wait()
		want("one is read, and one is broken",
			`age_seconds{entry="list"} 0`, `failures_total{entry="list"} 0`, `failures_total{entry="odd"} 0`, `usable{entry="list"} 1`, `usable{entry="odd"} 0`)
		source.set(nil, errors.New("down"))
		<-time.After(5*time.Minute + time.Second)
		synctest.Wait()
		want("it cannot be refreshed, and is good for a while",
			`age_seconds{entry="list"} 301`, `failures_total{entry="list"} 1`, `failures_total{entry="odd"} 0`, `usable{entry="list"} 1`, `usable{entry="odd"} 0`)
		g.Changed(ctx, nil, []document.Key{globalDocument("list", globalCall).Key, globalDocument("odd", "{}").Key})
		synctest.Wait()
		want("they are gone")
		cancel()
		synctest.Wait()
	})
}

// whyGlobal is the value of an entry, or the reason that there is none.
func whyGlobal(g *Entries, name string) any {
	value, err := g.Store.Get(name, "")
	if known, ok := errors.AsType[*globalcontext.Error](err); ok {
		return known.Reason
	}
	return value
}

// TestGlobalCalls: an entry is called when it is created, at its interval, and again soon after a
// failure; its last value stays valid for a while.
func TestGlobalCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, source, _ := newGlobalBench(t)
		away := errors.New("connection refused")
		source.set(nil, away)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); g.Run(ctx) }()
		for _, step := range []struct {
			reason string
			do     func()
			later  time.Duration
			called int
			want   any
		}{
			{"there is nothing", func() {}, time.Hour, 0, globalcontext.ErrAbsent},
			{"it is created, and the call fails", func() { g.Changed(ctx, []document.Document{globalDocument("list", globalCall)}, nil) }, time.Second, 2, globalcontext.ErrNotRead},
			{"it is called again soon", func() {}, globalPause, 4, globalcontext.ErrNotRead},
			{"and then later", func() { source.set("one", nil) }, 2 * globalPause, 5, "one"},
			{"it is called on its interval", func() { source.set("two", nil) }, 5*time.Minute - 2*time.Second, 5, "one"},
			{"which is over", func() {}, 3 * time.Second, 6, "two"},
			{"it fails", func() { source.set(nil, away) }, 5 * time.Minute, 8, "two"},
			{"and goes on failing", func() {}, globalcontext.MaxOutage - time.Minute, 18, "two"},
			{"for too long", func() {}, 2 * time.Minute, 20, globalcontext.ErrStale},
			{"it is mended", func() { source.set("three", nil) }, 5 * time.Minute, 21, "three"},
			{"its document is broken", func() {
				g.Changed(ctx, []document.Document{globalDocument("list", `{"apiCall":{"urlPath":"/api/v1/secrets"}}`)}, nil)
			}, time.Hour, 21, globalcontext.ErrBroken},
			{"and corrected", func() { g.Changed(ctx, []document.Document{globalDocument("list", globalCall)}, nil) }, time.Second, 22, "three"},
			{"it goes", func() {
				g.Changed(ctx, nil, []document.Key{{Group: kinds.KyvernoGroup, Resource: kinds.GlobalContextResource, Name: "list"}})
			}, time.Hour, 22, globalcontext.ErrAbsent},
		} {
			step.do()
			<-time.After(step.later)
			synctest.Wait()
			called, _, _ := source.seen()
			if got := whyGlobal(g, "list"); !reflect.DeepEqual(got, step.want) || called != step.called {
				t.Errorf("%s: %v after %d calls, want %v after %d", step.reason, got, called, step.want, step.called)
			}
		}
		stop()
		<-ended
	})
}

// TestGlobalWatches: an entry is watched while it is there, and what exceeds a bound
// is begun again later.
func TestGlobalWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, source, log := newGlobalBench(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); g.Run(ctx) }()
		g.Changed(ctx, []document.Document{globalDocument("pods", globalPods)}, nil)
		synctest.Wait()
		if got := whyGlobal(g, "pods"); got != any(globalcontext.ErrNotRead) {
			t.Errorf("before it is read: %v", got)
		}
		changed, failed := source.watch("pods")
		changed([]any{"a"})
		if got := whyGlobal(g, "pods"); !reflect.DeepEqual(got, []any{"a"}) {
			t.Errorf("%v", got)
		}
		g.Changed(ctx, []document.Document{globalDocument("pods", globalPods)}, nil) // the same again
		failed(errors.New("connection refused"))
		failed(errors.New("connection refused"))
		synctest.Wait()
		if _, opened, _ := source.seen(); opened != 1 {
			t.Errorf("it is watched %d times", opened)
		}
		if text := log.String(); strings.Count(text, "connection refused") != 1 || strings.Count(text, "is known") != 1 {
			t.Errorf("the log: %s", text)
		}
		failed(&limit.ExceededError{What: "what there is of pods", Most: 8})
		if got := whyGlobal(g, "pods"); got != any(globalcontext.ErrTooLarge) {
			t.Errorf("too many: %v", got)
		}
		changed([]any{strings.Repeat("a", globalcontext.MaxValue)})
		synctest.Wait()
		if _, _, watching := source.seen(); watching != 0 {
			t.Error("a list that is too large is still watched")
		}
		<-time.After(boundPause)
		synctest.Wait()
		if _, opened, watching := source.seen(); opened != 2 || watching != 1 {
			t.Errorf("%d watches, %d opened", watching, opened)
		}
		changed, _ = source.watch("pods")
		changed([]any{})
		// A watch of the previous document does not affect the new one.
		g.Changed(ctx, []document.Document{globalDocument("pods", `{"kubernetesResource":{"version":"v1","resource":"nodes"}}`)}, nil)
		changed([]any{"old"})
		synctest.Wait()
		if got := whyGlobal(g, "pods"); got != any(globalcontext.ErrNotRead) {
			t.Errorf("another document: %v", got)
		}
		if _, opened, watching := source.seen(); opened != 3 || watching != 1 {
			t.Errorf("%d watches, %d opened", watching, opened)
		}
		stop()
		<-ended
		if _, _, watching := source.seen(); watching != 0 {
			t.Error("it is watched after the end")
		}
	})
}

// TestGlobalPanic: a defect makes one entry unknown, and no other.
func TestGlobalPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, source, log := newGlobalBench(t)
		source.panics = true
		source.set("fine", nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); g.Run(ctx) }()
		g.Changed(ctx, []document.Document{globalDocument("pods", globalPods), globalDocument("list", globalCall)}, nil)
		<-time.After(time.Second)
		synctest.Wait()
		if whyGlobal(g, "pods") != any(globalcontext.ErrNotRead) || whyGlobal(g, "list") != "fine" || !strings.Contains(log.String(), "a defect") {
			t.Errorf("%v, %v, %s", whyGlobal(g, "pods"), whyGlobal(g, "list"), log)
		}
		stop()
		<-ended
	})
}

// TestGlobalsOfTheCluster reads pages and a path of an API server.
func TestGlobalsOfTheCluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != "/api/v1/namespaces/shop/configmaps":
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case r.URL.Query().Get("continue") == "":
			_, _ = fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"continue":"more"},"items":[{"metadata":{"name":"b","namespace":"shop"}}]}`)
		default:
			_, _ = fmt.Fprint(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a","namespace":"shop"}}]}`)
		}
	}))
	defer server.Close()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n", server.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: path, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	g, _, log := newGlobalBench(t)
	g.source = clusterGlobals{client: client, services: calls.New(nil, engine.GuardedTransport)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); g.Run(ctx) }()
	g.Changed(ctx, []document.Document{
		globalDocument("maps", `{"kubernetesResource":{"version":"v1","resource":"configmaps","namespace":"shop"},"projections":[{"name":"names","jmesPath":"[].metadata.name"}]}`),
		globalDocument("path", `{"apiCall":{"urlPath":"/api/v1/namespaces/shop/configmaps"}}`),
		globalDocument("hidden", `{"kubernetesResource":{"version":"v1","resource":"nodes"}}`),
		globalDocument("service", `{"apiCall":{"service":{"url":"https://elsewhere.example"},"retryLimit":1}}`),
	}, nil)
	testkit.Eventually(t, func() error {
		names, err := g.Store.Get("maps", "names")
		if err != nil || !reflect.DeepEqual(names, []any{"a", "b"}) {
			return fmt.Errorf("%v, %w", names, err)
		}
		_, err = g.Store.Get("path", "")
		return err
	})
	testkit.Eventually(t, func() error {
		for name, says := range map[string]string{"hidden": "grant its service account list on nodes", "service": "httpHosts"} {
			if _, err := g.Store.Get(name, ""); err == nil || !strings.Contains(err.Error(), says) {
				return fmt.Errorf("%s: %w, want %q; %s", name, err, says, log)
			}
		}
		return nil
	})
	stop()
	<-ended
}

// TestGlobalStatus: the status has whether an entry is known, and when it was called; an unchanged
// status is not written.
func TestGlobalStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		resource := schema.GroupVersionResource{Group: kinds.KyvernoGroup, Version: "v2beta1", Resource: kinds.GlobalContextResource}
		object := func(name string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "kyverno.io/v2beta1", "kind": "GlobalContextEntry", "metadata": map[string]any{"name": name, "uid": "uid-" + name},
				"status": map[string]any{"conditions": []any{map[string]any{"type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}}},
			}}
		}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "GlobalContextEntryList"}, object("list"), object("pods"))
		g, _, _ := newGlobalBench(t)
		status := &record.Reporter{Kind: "GlobalContextEntry", Client: client, Desired: g.Desired, Failed: func(err error) { t.Error(err) }}
		patches := func() (n int) {
			for _, action := range client.Actions() {
				if action.GetVerb() == "patch" && action.GetSubresource() == "status" {
					n++
				}
			}
			return n
		}
		hash := func(name string) string {
			for _, e := range g.Store.Entries() {
				if e.Name == name {
					return e.Hash
				}
			}
			return ""
		}
		answer := func(name string, value any) { g.answer(&globalcontext.Entry{Name: name, Hash: hash(name)}, value) }
		for _, step := range []struct {
			reason, of string
			do         func()
			wrote      int
			want, not  string
		}{
			{"nothing was read", "pods", func() {
				g.Changed(t.Context(), []document.Document{globalDocument("pods", globalPods), globalDocument("list", globalCall), globalDocument("other", globalCall)}, nil)
			}, 2, `"reason":"NotRead"`, "lastRefreshTime"},
			{"nothing changed", "pods", func() {}, 0, `"observedGeneration":3`, "lastRefreshTime"},
			{"the call answers", "list", func() { answer("list", []any{}) }, 1, `"lastRefreshTime":"2000-01-01T00:00:00Z"`, "NotRead"},
			{"it answers again", "list", func() { <-time.After(time.Second); answer("list", []any{"a"}) }, 0, `"Succeeded"`, "NotRead"},
			{"and a while later", "list", func() { <-time.After(time.Minute); answer("list", []any{"a"}) }, 1, `"lastRefreshTime":"2000-01-01T00:01:00Z"`, "NotRead"},
			{"the watch answers", "pods", func() { answer("pods", []any{"a"}) }, 1, `"Succeeded"`, "lastRefreshTime"},
			{"a projection has no value", "pods", func() { answer("pods", []any{}) }, 1, `"reason":"Projection"`, "Succeeded"},
			{"the document is broken", "pods", func() { g.Changed(t.Context(), []document.Document{globalDocument("pods", `{"other":{}}`)}, nil) }, 1, `"reason":"Broken"`, "Succeeded"},
			{"it is gone", "list", func() {
				g.Changed(t.Context(), nil, []document.Key{{Group: kinds.KyvernoGroup, Resource: kinds.GlobalContextResource, Name: "list"}})
			}, 0, `"Succeeded"`, "Broken"},
		} {
			before := patches()
			step.do()
			status.Round(t.Context())
			if wrote := patches() - before; wrote != step.wrote {
				t.Errorf("%s: %d are written, want %d", step.reason, wrote, step.wrote)
			}
			now, err := client.Resource(resource).Get(t.Context(), step.of, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(now.Object["status"])
			if err != nil || !strings.Contains(string(text), step.want) || strings.Contains(string(text), step.not) || !strings.Contains(string(text), `"type":"Other"`) {
				t.Errorf("%s: %s, want %s and not %s (%v)", step.reason, text, step.want, step.not, err)
			}
		}
	})
}

// TestGlobalKind: entries are distinguished from policies.
func TestGlobalKind(t *testing.T) {
	kind := kinds.GlobalContext()
	for _, version := range kind.Versions {
		if !globalcontext.Recognises(kind.Group+"/"+version, "GlobalContextEntry") {
			t.Errorf("%s is watched and not understood", version)
		}
	}
	if !kinds.IsGlobalContext(document.Key{Group: kind.Group, Resource: kind.Resource}) || kinds.IsGlobalContext(document.Key{Group: kind.Group, Resource: "clusterpolicies"}) {
		t.Error("they are mixed up")
	}
}
