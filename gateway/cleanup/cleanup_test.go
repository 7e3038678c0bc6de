package cleanup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	testclient "k8s.io/client-go/testing"

	core "github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/lifetime"
)

// podKind is the kind of the tests' objects.
func podKind() core.Kind {
	return core.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
}

// served are the resources of the tests.
type served struct{}

func (served) Resources() []configuration.Resource {
	return []configuration.Resource{{Group: "", Version: "v1", Kind: "Pod", Name: "pods", Namespaced: true}}
}

func status(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":%q,"code":%d}`, reason, code)
}

// TestDelete: a deletion names the UID and the version, and the errors of the API server are those of
// the controller.
func TestDelete(t *testing.T) {
	object := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "u1", "resourceVersion": "7"}}
	for _, row := range []struct {
		reason string
		code   int
		why    string
		is     error
		says   string
	}{
		{"deleted", http.StatusOK, "", nil, ""},
		{"gone", http.StatusNotFound, "NotFound", core.ErrNotFound, ""},
		{"changed", http.StatusConflict, "Conflict", core.ErrConflict, ""},
		{"denied by a webhook", http.StatusBadRequest, "BadRequest", core.ErrRefused, ""},
		{"forbidden", http.StatusForbidden, "Forbidden", core.ErrRefused, "grant delete on pods by a ClusterRole with the label quaymaster.dev/aggregate-to-cleanup"},
		{"unavailable", http.StatusInternalServerError, "InternalError", nil, "no"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			var path, body string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				path, body = r.Method+" "+r.URL.Path, string(text)
				if row.code == http.StatusOK {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
					return
				}
				status(w, row.code, row.why)
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			err = (&apiServer{Reader: background.NewReader(client, served{}), client: client}).Delete(t.Context(), podKind(), object, "Orphan")
			if path != "DELETE /api/v1/namespaces/shop/pods/a" {
				t.Error(path)
			}
			for _, want := range []string{`"uid":"u1"`, `"resourceVersion":"7"`, `"propagationPolicy":"Orphan"`} {
				if !strings.Contains(body, want) {
					t.Errorf("%s lacks %s", body, want)
				}
			}
			if (err == nil) != (row.code == http.StatusOK) || row.is != nil && !errors.Is(err, row.is) || row.says != "" && !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v", err)
			}
		})
	}
	without := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "u1"}}
	if err := (&apiServer{}).Delete(t.Context(), podKind(), without, ""); err == nil {
		t.Error("an object without a version is deleted")
	}
}

// leaseServer is an API server with one Lease, which keeps versions.
type leaseServer struct {
	mu      sync.Mutex
	stored  map[string]any
	version int
}

func (l *leaseServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Method != http.MethodGet {
		var written map[string]any
		if err := json.NewDecoder(r.Body).Decode(&written); err != nil {
			status(w, http.StatusBadRequest, "BadRequest")
			return
		}
		metadata, _ := written["metadata"].(map[string]any)
		switch {
		case r.Method == http.MethodPost && l.stored != nil:
			status(w, http.StatusConflict, "AlreadyExists")
			return
		case r.Method == http.MethodPut && metadata["resourceVersion"] != fmt.Sprint(l.version):
			status(w, http.StatusConflict, "Conflict")
			return
		}
		l.version++
		metadata["resourceVersion"] = fmt.Sprint(l.version)
		l.stored = written
	}
	if l.stored == nil {
		status(w, http.StatusNotFound, "NotFound")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(l.stored)
}

// TestRunStore: of two writers with the same version, one writes.
func TestRunStore(t *testing.T) {
	api := &leaseServer{}
	server := httptest.NewServer(api)
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	one := runStore{client: client.CoordinationV1(), namespace: "quaymaster", holder: "one"}
	other := runStore{client: client.CoordinationV1(), namespace: "quaymaster", holder: "other"}
	first, err := one.Load(t.Context())
	if err != nil || first.Version != "" || len(first.Runs) > 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	first.Runs = map[string]cleanup.Record{"a": {Form: "f", Scheduled: time.Unix(1_900_000_000, 0).UTC(), Open: true, Deletions: 10}}
	version, err := one.Save(t.Context(), first)
	if err != nil || version != "1" {
		t.Fatalf("%q, %v", version, err)
	}
	if _, err := other.Save(t.Context(), first); !errors.Is(err, cleanup.ErrConflict) {
		t.Errorf("it is made twice: %v", err)
	}
	loaded, err := other.Load(t.Context())
	if err != nil || loaded.Version != "1" || loaded.Runs["a"] != first.Runs["a"] {
		t.Fatalf("%+v, %v", loaded, err)
	}
	if _, err := other.Save(t.Context(), loaded); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Save(t.Context(), loaded); !errors.Is(err, cleanup.ErrConflict) {
		t.Errorf("an outdated version is written: %v", err)
	}
	api.stored["metadata"].(map[string]any)["annotations"] = map[string]any{runsAnnotation: "x"} //nolint:forcetypeassert // written above
	if _, err := one.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "delete the lease") {
		t.Errorf("malformed records are read: %v", err)
	}
	many := cleanup.Records{Runs: map[string]cleanup.Record{}}
	for i := range 5000 {
		many.Runs[fmt.Sprintf("%022d", i)] = first.Runs["a"]
	}
	if _, err := one.Save(t.Context(), many); err == nil {
		t.Error("more records than a Lease holds are written")
	}
}

// TestRecordsFit: the most rules that the controller runs have records that a Lease holds.
func TestRecordsFit(t *testing.T) {
	runs := map[string]cleanup.Record{}
	for i := range 1500 {
		runs[fmt.Sprintf("%022d", i)] = cleanup.Record{Form: strings.Repeat("f", 22), Scheduled: time.Now().UTC(), Open: true, Deletions: 100}
	}
	if text, err := json.Marshal(runs); err != nil || len(text) > maxStored {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestAccess: the API server is asked once, and its errors are no answer.
func TestAccess(t *testing.T) {
	client, asked, now := fake.NewClientset(), 0, time.Unix(1_900_000_000, 0)
	var failed error
	client.PrependReactor("create", "selfsubjectaccessreviews", func(a testclient.Action) (bool, runtime.Object, error) {
		asked++
		review, _ := a.(testclient.CreateAction).GetObject().(*authorization.SelfSubjectAccessReview) //nolint:forcetypeassert // of a create
		review.Status.Allowed = review.Spec.ResourceAttributes.Verb == "list"
		return true, review, failed
	})
	access := &ownAccess{client: client.AuthorizationV1(), now: func() time.Time { return now }}
	for range 2 {
		if may, err := access.May(t.Context(), "list", podKind(), ""); err != nil || !may {
			t.Errorf("list: %v, %v", may, err)
		}
		if may, err := access.May(t.Context(), "delete", podKind(), "shop"); err != nil || may {
			t.Errorf("delete: %v, %v", may, err)
		}
	}
	if asked != 2 {
		t.Errorf("%d requests", asked)
	}
	now, failed = now.Add(accessAge), errors.New("no answer")
	if may, err := access.May(t.Context(), "list", podKind(), ""); err == nil || may {
		t.Errorf("after an error: %v, %v", may, err)
	}
}

// TestUserAccess: the review has all attributes of the user, and a denial wins.
func TestUserAccess(t *testing.T) {
	client := fake.NewClientset()
	var spec authorization.SubjectAccessReviewSpec
	var answer authorization.SubjectAccessReviewStatus
	var failed error
	client.PrependReactor("create", "subjectaccessreviews", func(a testclient.Action) (bool, runtime.Object, error) {
		review, _ := a.(testclient.CreateAction).GetObject().(*authorization.SubjectAccessReview) //nolint:forcetypeassert // of a create
		spec, review.Status = review.Spec, answer
		return true, review, failed
	})
	user := policy.User{Name: "alice", UID: "1", Groups: []string{"dev"}, Extra: []byte(`{"scopes":["a"]}`)}
	what := lifetime.Deletion{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web"}
	access := UserAccess{Client: client.AuthorizationV1()}
	for _, row := range []struct {
		reason string
		answer authorization.SubjectAccessReviewStatus
		err    error
		want   bool
	}{
		{"allowed", authorization.SubjectAccessReviewStatus{Allowed: true}, nil, true},
		{"not allowed", authorization.SubjectAccessReviewStatus{}, nil, false},
		{"denied", authorization.SubjectAccessReviewStatus{Allowed: true, Denied: true}, nil, false},
		{"no answer", authorization.SubjectAccessReviewStatus{Allowed: true}, errors.New("no answer"), false},
	} {
		answer, failed = row.answer, row.err
		may, err := access.MayDelete(t.Context(), user, what)
		if may != row.want || (err != nil) != (row.err != nil) {
			t.Errorf("%s: %v, %v", row.reason, may, err)
		}
	}
	if a := spec.ResourceAttributes; a.Verb != "delete" || a.Group != "apps" || a.Resource != "deployments" || a.Namespace != "shop" || a.Name != "web" ||
		spec.User != "alice" || spec.Groups[0] != "dev" || spec.Extra["scopes"][0] != "a" || spec.UID != "1" {
		t.Errorf("%+v", spec)
	}
	if may, err := access.MayDelete(t.Context(), policy.User{}, what); may || err != nil {
		t.Errorf("no user: %v, %v", may, err)
	}
}

// recorded are the calls of an observer's receivers.
type recorded struct {
	counts []string
	events []record.Event
	lines  []decisionlog.Deletion
}

func (r *recorded) CleanedUp(cause, outcome string) { r.counts = append(r.counts, cause+" "+outcome) }
func (r *recorded) CleanupEnded(cause, end string, _ float64) {
	r.counts = append(r.counts, cause+" "+end)
}
func (r *recorded) Record(event record.Event) { r.events = append(r.events, event) }

func observing() (*observer, *recorded) {
	r := &recorded{}
	return &observer{
		log: slog.New(slog.DiscardHandler), metrics: r, events: r, lacking: make(chan map[string]string, 1),
		record: func(d decisionlog.Deletion) { r.lines = append(r.lines, d) },
	}, r
}

// TestObserver: deletions are in the decision log and in events, and the names of objects are not in
// events about cluster-wide policies.
func TestObserver(t *testing.T) {
	o, r := observing()
	p := &policy.Policy{Kind: "ClusterCleanupPolicy", Name: "old", Hash: "h"}
	d := cleanup.Deletion{Policy: p, Rule: "old", APIVersion: "v1", Kind: podKind(), Namespace: "shop", Name: "secret-name", UID: "u1", Propagation: "Orphan", Outcome: cleanup.Deleted}
	o.Deleted(d)
	d.Outcome, d.Message = cleanup.Failed, strings.Repeat("x", 5000)
	o.Deleted(d)
	d.Outcome = cleanup.Undecided // in the end of the run alone
	o.Deleted(d)
	o.Deleted(cleanup.Deletion{APIVersion: "v1", Kind: podKind(), Namespace: "shop", Name: "a", UID: "u2", By: "alice", Outcome: cleanup.Deleted})
	o.Deleted(cleanup.Deletion{APIVersion: "v1", Kind: podKind(), Namespace: "shop", Name: "b", UID: "u3", Outcome: cleanup.Ignored, Message: "no grant"})
	if len(r.lines) != 3 || r.lines[0].Policy != "ClusterCleanupPolicy/old" || r.lines[0].Object.UID != "u1" || len(r.lines[1].Message) > maxMessage+4 || r.lines[2].By != "alice" || r.lines[2].Policy != "" {
		t.Errorf("%+v", r.lines)
	}
	var reasons []string
	for _, e := range r.events {
		reasons = append(reasons, e.Reason)
	}
	if want := []string{"CleanedUp", "CleanupFailed", "CleanedUp", "LifetimeIgnored"}; !slices.Equal(reasons, want) {
		t.Errorf("%q, want %q", reasons, want)
	}
	if want := []string{"policy deleted", "policy failed", "policy undecided", "ttl deleted", "ttl ignored"}; !slices.Equal(r.counts, want) {
		t.Errorf("%q, want %q", r.counts, want)
	}
	o, r = observing()
	run := cleanup.Run{Policy: p, Rule: "old", End: cleanup.LimitReached, Deleted: 100, Examined: 300, Messages: []string{"Pod shop/secret-name: x"}}
	o.Ended(run)
	if e := r.events[0]; e.Type != "Warning" || e.Regarding.Name != "old" || strings.Contains(e.Note, "secret-name") || !strings.Contains(e.Note, "100 deleted") || !strings.Contains(e.Note, "cleanup.limit") {
		t.Errorf("%+v", e)
	}
	own := *p
	own.Kind, own.Namespace = "CleanupPolicy", "shop"
	run.Policy = &own
	o.Ended(run)
	if e := r.events[1]; !strings.Contains(e.Note, "secret-name") || e.Regarding.Namespace != "shop" {
		t.Errorf("%+v", e)
	}
	o.Ended(cleanup.Run{Policy: p, End: cleanup.Completed})
	o.Ended(cleanup.Run{End: cleanup.Completed})
	if len(r.events) != 2 {
		t.Errorf("a run without objects has an event: %+v", r.events[2:])
	}
}

// TestLackingPermissions: an event is written when they change.
func TestLackingPermissions(t *testing.T) {
	o, r := observing()
	for _, lacking := range []map[string]string{{"ClusterCleanupPolicy/old": "delete on pods"}, {"ClusterCleanupPolicy/old": "delete on pods"}, {}, {"ClusterCleanupPolicy/old": "delete on pods"}} {
		o.Lacking(lacking)
	}
	if len(r.events) != 2 || r.events[0].Reason != "PermissionMissing" || !strings.Contains(r.events[0].Note, "aggregate-to-cleanup") {
		t.Errorf("%+v", r.events)
	}
	if got := bounded(map[string]string{"a": strings.Repeat("x", 1000)}); len(got["a"]) > maxPermissions+4 {
		t.Errorf("%d bytes", len(got["a"]))
	}
}

// TestPublish: permissions that policies lack are stored, and read by another process.
func TestPublish(t *testing.T) {
	client := fake.NewClientset()
	ctx, end := context.WithCancel(t.Context())
	lacking, done := make(chan map[string]string), make(chan struct{})
	go func() {
		defer close(done)
		publisher{store: lackingState(client.CoordinationV1(), "quaymaster", "one"), lacking: lacking, log: slog.New(slog.DiscardHandler)}.Run(ctx)
	}()
	lacking <- map[string]string{"a": "delete on pods"}
	lacking <- map[string]string{"b": "delete on pods"} // received after the first is stored
	stored, err := Lacking(client.CoordinationV1(), "quaymaster")(t.Context())
	if err != nil || len(stored) != 1 {
		t.Errorf("%v, %v", stored, err)
	}
	end()
	<-done
	if none, err := Lacking(client.CoordinationV1(), "other")(t.Context()); err != nil || len(none) > 0 {
		t.Errorf("%v, %v", none, err)
	}
}

func ExampleNew() {
	_, err := New(Config{})
	fmt.Println(err)
	// Output: cleanup: all dependencies but Events and Record are required
}
