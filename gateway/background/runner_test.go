package background

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/policy"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// backgroundAPI returns the set responses, and records its requests.
type backgroundAPI struct {
	t      *testing.T
	answer func(w http.ResponseWriter, r *http.Request, body string)

	mu    sync.Mutex
	asked []string
}

func (s *backgroundAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	s.answer(w, r, string(body))
}

func respond(w http.ResponseWriter, text string) { _, _ = io.WriteString(w, text) } // a client that went is the test's end

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	respond(w, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":%q}`, reason, code, reason))
}

var configMapKind = background.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}

// fixedResources are those that the API server serves.
type fixedResources []configuration.Resource

func (f fixedResources) Resources() []configuration.Resource { return f }

func newAPIServer(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *apiServer {
	t.Helper()
	server := httptest.NewServer(&backgroundAPI{t: t, answer: answer})
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	known := fixedResources([]configuration.Resource{
		{Version: "v1", Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Version: "v1", Name: "namespaces", Kind: "Namespace"},
		{Group: "keda.sh", Version: "v1alpha1", Name: "scaledobjects", Kind: "ScaledObject", Namespaced: true},
		{Group: "keda.sh", Version: "v1", Name: "scaledobjects", Kind: "ScaledObject", Namespaced: true},
		{Group: "kyverno.io", Version: "v1", Name: "clusterpolicies", Kind: "ClusterPolicy"},
		{Group: "kyverno.io", Version: "v1", Name: "policies", Kind: "Policy", Namespaced: true},
	})
	return &apiServer{client: client, kinds: known}
}

func configMap(name, version string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"team","uid":"u-%s","resourceVersion":%q,"generation":3}}`, name, name, version)
}

func TestBackgroundKinds(t *testing.T) {
	c := newAPIServer(t, nil)
	for name, test := range map[string]struct {
		target policy.Target
		want   []string
	}{
		"one version of each": {policy.Target{Group: "*", Version: "*", Kind: "ScaledObject"}, []string{"keda.sh/v1 scaledobjects"}},
		"the version named":   {policy.Target{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}, []string{"keda.sh/v1alpha1 scaledobjects"}},
		"the core group":      {policy.Target{Group: "", Version: "v1", Kind: "ConfigMap"}, []string{"v1 configmaps"}},
		"another group":       {policy.Target{Group: "apps", Version: "*", Kind: "ConfigMap"}, nil},
		"none":                {policy.Target{Group: "*", Version: "*", Kind: "Certificate"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := c.Served(t.Context(), test.target)
			var got []string
			for _, kind := range list {
				got = append(got, kind.APIVersion()+" "+kind.Resource)
			}
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%v, %v; want %v", got, err, test.want)
			}
		})
	}
	if _, err := c.Kind(t.Context(), policy.ObjectKind{APIVersion: "cert-manager.io/v1", Kind: "Certificate"}); !errors.Is(err, background.ErrNotServed) {
		t.Errorf("a kind that is not served: %v", err)
	}
	if _, err := (&apiServer{kinds: fixedResources(nil)}).Kind(t.Context(), policy.ObjectKind{}); err == nil || errors.Is(err, background.ErrNotServed) {
		t.Errorf("before anything is known: %v", err)
	}
}

func TestBackgroundErrors(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		reason string
		want   error
	}{
		"not found": {404, "NotFound", background.ErrNotFound},
		"exists":    {409, "AlreadyExists", background.ErrExists},
		"conflict":  {409, "Conflict", background.ErrConflict},
		"forbidden": {403, "Forbidden", nil},
		"invalid":   {422, "Invalid", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newAPIServer(t, func(w http.ResponseWriter, _ *http.Request, _ string) { refuse(w, test.code, test.reason) })
			object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "1"}}
			_, get := c.Get(t.Context(), configMapKind, "team", "a")
			_, create := c.Create(t.Context(), configMapKind, object)
			_, update := c.Update(t.Context(), configMapKind, object, background.Writing{})
			for what, err := range map[string]error{
				"get": get, "create": create, "update": update, "delete": c.Delete(t.Context(), configMapKind, object),
				"patch": c.Patch(t.Context(), configMapKind, "team", "a", []patch.Operation{{Op: "remove", Path: "/data"}}),
				"list":  c.Each(t.Context(), configMapKind, "", "", func(map[string]any) error { return nil }),
			} {
				if err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("%s: %v", what, err)
				}
				for _, other := range []error{background.ErrNotFound, background.ErrExists, background.ErrConflict} {
					if !errors.Is(test.want, other) && errors.Is(err, other) {
						t.Errorf("%s: %v is %v as well", what, err, other)
					}
				}
			}
		})
	}
}

// TestBackgroundPagesFitTheMemory: a page of the largest objects that there can be is no
// larger than what a scan reads at once, and all pages are read.
func TestBackgroundPagesFitTheMemory(t *testing.T) {
	const largest = 3 << 19 // what etcd takes
	left := 40
	c := newAPIServer(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		most, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil || most < 1 || most*largest > cluster.MaxPage {
			t.Errorf("a page of %s", r.URL.Query().Get("limit"))
		}
		var items []string
		for range min(most, left) {
			items = append(items, configMap(fmt.Sprintf("c%d", left), "1"))
			left--
		}
		next := ""
		if left > 0 {
			next = "more"
		}
		respond(w, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7","continue":%q},"items":[%s]}`, next, strings.Join(items, ",")))
	})
	seen := 0
	if err := c.Each(t.Context(), configMapKind, "", "", func(map[string]any) error { seen++; return nil }); err != nil || seen != 40 {
		t.Errorf("%d objects of 40, %v", seen, err)
	}
}

func TestBackgroundWrites(t *testing.T) {
	var got struct {
		method, path, query, kind, body string
	}
	c := newAPIServer(t, func(w http.ResponseWriter, r *http.Request, body string) {
		got.method, got.path, got.query, got.kind, got.body = r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), body
		respond(w, configMap("a", "2"))
	})
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "1"}, "data": map[string]any{"n": 1.0}}
	const at = "/api/v1/namespaces/team/configmaps"
	for name, test := range map[string]struct {
		do                        func() error
		method, path, query, body string
	}{
		"create": {func() error { _, err := c.Create(t.Context(), configMapKind, object); return err }, "POST", at, "fieldManager=quaymaster", `"n":1`},
		"update": {func() error { _, err := c.Update(t.Context(), configMapKind, object, background.Writing{}); return err }, "PUT", at + "/a", "fieldManager=quaymaster", `"resourceVersion":"1"`},
		"dry run": {func() error {
			_, err := c.Update(t.Context(), configMapKind, object, background.Writing{DryRun: true})
			return err
		}, "PUT", at + "/a", "dryRun=All&fieldManager=quaymaster", `"n":1`},
		"apply": {func() error {
			_, err := c.Update(t.Context(), configMapKind, object, background.Writing{Apply: true})
			return err
		}, "PATCH", at + "/a", "fieldManager=quaymaster&force=true", `"n":1`},
		"patch": {func() error {
			return c.Patch(t.Context(), configMapKind, "team", "a", []patch.Operation{{Op: "replace", Path: "/metadata/resourceVersion", Value: "1"}, {Op: "remove", Path: "/data"}})
		}, "PATCH", at + "/a", "fieldManager=quaymaster", `[{"op":"replace","path":"/metadata/resourceVersion","value":"1"},{"op":"remove","path":"/data"}]`},
		"delete": {func() error { return c.Delete(t.Context(), configMapKind, object) }, "DELETE", at + "/a", "", `"preconditions":{"uid":"u","resourceVersion":"1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.do(); err != nil {
				t.Fatal(err)
			}
			if got.method != test.method || got.path != test.path || got.query != test.query || !strings.Contains(got.body, test.body) {
				t.Errorf("asked %s %s?%s %s", got.method, got.path, got.query, got.body)
			}
		})
	}
	read, err := c.Get(t.Context(), configMapKind, "team", "a")
	if generation := read["metadata"].(map[string]any)["generation"]; err != nil || generation != 3.0 {
		t.Errorf("a number is %T, %v", generation, err)
	}
}

// sinkNotes is a background.Sink that records its calls.
type sinkNotes struct {
	mu   sync.Mutex
	said []string
	want int
	done chan struct{}
}

func (s *sinkNotes) say(what string, object map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object != nil {
		_, name := named(object)
		what += " " + name
	}
	s.said = append(s.said, what)
	if len(s.said) == s.want {
		close(s.done)
	}
}

func (s *sinkNotes) Listing()                     { s.say("listing", nil) }
func (s *sinkNotes) Listed(object map[string]any) { s.say("listed", object) }
func (s *sinkNotes) Synced()                      { s.say("synced", nil) }
func (s *sinkNotes) Deleted(object map[string]any) {
	s.say("deleted", object)
}
func (s *sinkNotes) Failed(error) { s.say("failed", nil) }
func (s *sinkNotes) Changed(object map[string]any, came bool) {
	if came {
		s.say("came", object)
		return
	}
	s.say("changed", object)
}

// A list comes in pages; a watch goes on where it ended, and begins again where the
// API server does not know any more.
func TestBackgroundWatch(t *testing.T) {
	var mu sync.Mutex
	watches := 0
	c := newAPIServer(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		query := r.URL.Query()
		if query.Get("labelSelector") != "a=b" {
			t.Errorf("asked for %q", query.Get("labelSelector"))
		}
		list := func(version, next string, items ...string) {
			respond(w, fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, next, strings.Join(items, ",")))
		}
		if query.Get("watch") == "" {
			mu.Lock()
			again := watches > 0
			mu.Unlock()
			switch {
			case again:
				list("20", "", configMap("three", "13"))
			case query.Get("continue") == "":
				list("10", "next", configMap("one", "1"))
			default:
				list("10", "", configMap("two", "2"))
			}
			return
		}
		mu.Lock()
		watches++
		n := watches
		mu.Unlock()
		event := func(kind, object string) {
			respond(w, fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object))
		}
		switch n {
		case 1:
			if query.Get("resourceVersion") != "10" {
				t.Errorf("watched from %s", query.Get("resourceVersion"))
			}
			event("ADDED", configMap("three", "11"))
			event("MODIFIED", configMap("three", "12"))
			event("BOOKMARK", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"15"}}`)
		case 2:
			if query.Get("resourceVersion") != "15" {
				t.Errorf("went on from %s", query.Get("resourceVersion"))
			}
			event("DELETED", configMap("one", "16"))
			event("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`)
		default:
			<-r.Context().Done()
		}
	})
	want := []string{
		"listing", "listed one", "listed two", "synced", "came three", "changed three", "deleted one",
		"listing", "listed three", "synced",
	}
	sink := &sinkNotes{want: len(want), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Watch(ctx, configMapKind, "", "a=b", sink)
	}()
	select {
	case <-sink.done:
	case <-time.After(30 * time.Second):
		t.Error("it takes too long")
	}
	cancel()
	<-ended
	if !slices.Equal(sink.said, want) {
		t.Errorf("got %q\nwant %q", sink.said, want)
	}
}

func TestBackgroundPolicyGone(t *testing.T) {
	there := map[string]bool{"/apis/kyverno.io/v1/clusterpolicies/here": true, "/apis/kyverno.io/v1/namespaces/team/policies/here": true}
	c := newAPIServer(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/unknown"):
			refuse(w, 403, "Forbidden")
		case there[r.URL.Path]:
			respond(w, `{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"here"}}`)
		default:
			refuse(w, 404, "NotFound")
		}
	})
	for id, want := range map[string]struct{ gone, fails bool }{
		"ClusterPolicy/here":    {},
		"ClusterPolicy/other":   {gone: true},
		"Policy/team/here":      {},
		"Policy/team/other":     {gone: true},
		"ClusterPolicy/unknown": {fails: true},
		"Other/here":            {fails: true},
	} {
		gone, err := policies{cluster: c}.Gone(t.Context(), id)
		if gone != want.gone || (err != nil) != want.fails {
			t.Errorf("%s: %v, %v", id, gone, err)
		}
	}
}

func TestLeaseMemory(t *testing.T) {
	client := fake.NewClientset().CoordinationV1()
	m := newProgressStore(client, "quaymaster", "one")
	if p, err := m.Load(t.Context()); err != nil || !p.Until.IsZero() || p.Kinds != nil {
		t.Errorf("before anything was saved: %+v, %v", p, err)
	}
	for _, want := range []background.Progress{
		{Until: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kinds: []policy.ObjectKind{{APIVersion: "v1", Kind: "ConfigMap"}}},
		{Until: time.Date(2026, 1, 2, 4, 4, 5, 0, time.UTC)},
	} {
		if err := m.Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		p, err := m.Load(t.Context())
		if err != nil || !p.Until.Equal(want.Until) || !slices.Equal(p.Kinds, want.Kinds) {
			t.Errorf("%+v, %v; want %+v", p, err, want)
		}
	}
}

// eventNotes keeps events.
type eventNotes struct{ notes []record.Event }

func (n *eventNotes) Record(e record.Event) { n.notes = append(n.notes, e) }

func TestBackgroundObserver(t *testing.T) {
	var log strings.Builder
	events := &eventNotes{}
	counted := metrics.New(metrics.Build{})
	l := observer{log: slog.New(slog.NewTextHandler(&log, nil)), metrics: counted, events: events}
	trigger := generated.Trigger{APIVersion: "v1", Kind: "Namespace", Name: "team", UID: "u"}
	l.Worked(background.Work{Trigger: trigger, Policy: "ClusterPolicy/p", Rule: "r", Object: "RoleBinding team/a", Action: background.Created})
	if len(events.notes) != 0 || !strings.Contains(log.String(), "an object was created because of a rule") {
		t.Errorf("%v, %s", events.notes, log.String())
	}
	l.Worked(background.Work{Trigger: trigger, Policy: "ClusterPolicy/p", Rule: "r", Object: "RoleBinding team/a", Err: errors.New("forbidden")})
	if len(events.notes) != 2 || events.notes[0].Note != "policy ClusterPolicy/p/r: RoleBinding team/a: forbidden" || events.notes[0].Regarding.Name != "team" {
		t.Fatalf("%+v", events.notes)
	}
	if of := events.notes[1]; of.Regarding.Kind != "ClusterPolicy" || of.Regarding.Name != "p" || of.Related != events.notes[0].Regarding ||
		of.Reason != events.notes[0].Reason || of.Note != "rule r failed for Namespace team" {
		t.Errorf("the event on the policy: %+v", of)
	}
	l.Worked(background.Work{Trigger: trigger, Err: errors.New("a loop"), Final: true})
	scraped := httptest.NewRecorder()
	counted.Handler().ServeHTTP(scraped, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{`{action="created",outcome="done"} 1`, `{action="none",outcome="retried"} 1`, `{action="none",outcome="given-up"} 1`} {
		want = "quaymaster_background_work_total" + want
		if !strings.Contains(scraped.Body.String(), want) {
			t.Errorf("no series %s", want)
		}
	}
}

func TestObjectImages(t *testing.T) {
	var pod map[string]any
	if err := json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"nginx:1"}]}}`), &pod); err != nil {
		t.Fatal(err)
	}
	found, err := objectImages{}.Finder(maps.Clone(pod))(nil)
	if err != nil || len(found) != 1 || found[0].Container != "c" {
		t.Errorf("%v, %v", found, err)
	}
	if found, err := (objectImages{}).Finder(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}})(nil); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// reportNotes keeps decisions, or refuses them.
type reportNotes struct {
	all  []report.Decided
	fail error
}

func (n *reportNotes) Put(_ context.Context, d report.Decided) error {
	n.all = append(n.all, d)
	return n.fail
}

// TestResultsForReports: the results of rules about other objects are decisions about objects that
// exist.
func TestResultsForReports(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	about := &policy.Subject{Version: "v1", Kind: "Namespace", Namespace: "team", Name: "team", Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "team", "uid": "u"}})}
	given := []policy.RuleResult{
		{Policy: p, Rule: "made", Kind: policy.GenerateRule, Ruling: policy.Ruling{Result: policy.Pass, Reasons: []policy.Reason{{Message: "they exist"}}}},
		{Policy: p, Rule: "failed", Kind: policy.GenerateRule, Ruling: policy.Ruling{Result: policy.Pass}, Err: errors.New("forbidden")},
		{Policy: p, Rule: "excluded", Kind: policy.AlterRule, Skip: "conditions"},
	}
	var log strings.Builder
	notes := &reportNotes{}
	results{to: notes, log: slog.New(slog.NewTextHandler(&log, nil))}.Report(t.Context(), about, given)
	if len(notes.all) != 1 || log.Len() != 0 {
		t.Fatalf("%+v, %s", notes.all, log.String())
	}
	var got []string
	for _, r := range result.Of(notes.all[0]) {
		got = append(got, r.Rule+" "+string(r.Status)+" "+r.Message)
		if r.Resource.UID != "u" || r.Process != report.ProcessBackground || r.Time.IsZero() {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"made pass they exist", "failed error forbidden", "excluded skip conditions"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	results{to: &reportNotes{fail: errors.New("full")}, log: slog.New(slog.NewTextHandler(&log, nil))}.Report(t.Context(), about, given)
	if !strings.Contains(log.String(), "full") {
		t.Errorf("the log has %q", log.String())
	}
}
