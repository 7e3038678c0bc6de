package trust_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/trust/trusttest"
)

func newClient() *http.Client { return &http.Client{} }

// repository is a TUF repository in memory with correct metadata.
type repository struct {
	*trusttest.Repository
	root []byte
}

func newRepository(t testing.TB) *repository {
	t.Helper()
	r, err := trusttest.New()
	if err != nil {
		t.Fatal(err)
	}
	return &repository{Repository: r, root: r.Root()}
}

// publish makes content the trusted root of a new version.
func (r *repository) publish(t testing.TB, content []byte) {
	t.Helper()
	if err := r.Publish(content, trusttest.None); err != nil {
		t.Fatal(err)
	}
}

func TestRefresh(t *testing.T) {
	one, two := newSigstore("one"), newSigstore("two")
	repository := newRepository(t)
	repository.publish(t, one.TrustedRoot())
	server := httptest.NewServer(repository)
	store := newStore(t, trust.Options{TUF: &trust.TUF{
		URL: server.URL, Root: repository.root, Client: server.Client(), CachePath: t.TempDir(),
	}})
	embedded := store.Snapshot()
	if status := store.Status(); !status.Tried.IsZero() || status.Loaded.IsZero() {
		t.Errorf("before any refresh: %+v", status)
	}

	if err := store.RefreshOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := store.Snapshot()
	if want := newStore(t, trust.Options{TrustedRoot: one.TrustedRoot()}).Snapshot().Generation(); first.Generation() != want {
		t.Errorf("generation %s after the refresh, want that of the published root, %s", first.Generation(), want)
	}
	if embedded.Generation() == first.Generation() || embedded.Check() != nil {
		t.Error("the old snapshot changed")
	}

	if err := store.RefreshOnce(t.Context()); err != nil || store.Snapshot() != first {
		t.Errorf("an equal root made another snapshot (error %v)", err)
	}
	repository.publish(t, two.TrustedRoot())
	if err := store.RefreshOnce(t.Context()); err != nil || store.Snapshot().Generation() == first.Generation() {
		t.Errorf("a new root was not taken (error %v)", err)
	}
	second := store.Snapshot()

	repository.publish(t, []byte(`{"mediaType":"none"}`))
	failures := map[string]func(){
		"a root that cannot be read": func() {},
		"a server that is away":      server.Close,
	}
	for _, reason := range []string{"a root that cannot be read", "a server that is away"} {
		failures[reason]()
		if err := store.RefreshOnce(t.Context()); err == nil {
			t.Errorf("%s: no error", reason)
		}
		if status := store.Status(); store.Snapshot() != second || status.Err == nil || status.Generation != second.Generation() {
			t.Errorf("%s: the old snapshot did not stay, or the status does not report it: %+v", reason, status)
		}
	}
}

// TestRefreshRefuses: metadata that the repository's keys did not sign is not accepted.
func TestRefreshRefuses(t *testing.T) {
	ours, theirs := newRepository(t), newRepository(t)
	theirs.publish(t, newSigstore("theirs").TrustedRoot())
	server := httptest.NewServer(theirs)
	defer server.Close()
	store := newStore(t, trust.Options{TUF: &trust.TUF{URL: server.URL, Root: ours.root, Client: server.Client()}})
	before := store.Snapshot()
	if err := store.RefreshOnce(t.Context()); err == nil || store.Snapshot() != before {
		t.Errorf("a foreign repository was believed (error %v)", err)
	}
	store = newStore(t, trust.Options{TUF: &trust.TUF{URL: server.URL, Root: theirs.root, Client: server.Client()}})
	if err := store.RefreshOnce(t.Context()); err != nil {
		t.Errorf("the same with the right first root: %v", err)
	}
}

// TestRefreshLoop runs the loop in a time of its own.
func TestRefreshLoop(t *testing.T) {
	if err := newStore(t, trust.Options{}).Refresh(t.Context(), nil); err == nil {
		t.Error("a store without TUF refreshes")
	}
	synctest.Test(t, func(t *testing.T) {
		transport := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no network") })
		store := newStore(t, trust.Options{TUF: &trust.TUF{Interval: time.Hour, Client: &http.Client{Transport: transport}}})
		ctx, stop := context.WithCancel(t.Context())
		var failures []error
		done := make(chan error, 1)
		go func() { done <- store.Refresh(ctx, func(err error) { failures = append(failures, err) }) }()
		<-time.After(2*time.Hour + time.Minute)
		synctest.Wait()
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the loop ended with %v", err)
		}
		if len(failures) != 3 || !strings.Contains(failures[0].Error(), "no network") {
			t.Errorf("reported %d failures (%v), want 3: at once and after each hour", len(failures), failures)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
