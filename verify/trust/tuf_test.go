package trust_test

import (
	"bytes"
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

// TestRotatedKeys: keys that a repository has rotated out are not trusted again where the newer root
// is hidden: not by a store, not by one that starts again, and not by a fetcher without a folder.
func TestRotatedKeys(t *testing.T) {
	one, two, three := newSigstore("one").TrustedRoot(), newSigstore("two").TrustedRoot(), newSigstore("three").TrustedRoot()
	generation := func(text []byte) string {
		return newStore(t, trust.Options{TrustedRoot: text}).Snapshot().Generation()
	}
	honest := newRepository(t)
	honest.publish(t, one)
	shown := honest.Repository
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { shown.ServeHTTP(w, r) }))
	defer server.Close()
	options := trust.TUF{URL: server.URL, Root: honest.root, Client: server.Client()}
	fetch := options.Fetcher()
	options.CachePath = t.TempDir()
	open := func() *trust.Store { return newStore(t, trust.Options{TUF: &options}) }
	store := open()
	step := func(reason string, want []byte, good bool) {
		t.Helper()
		for _, one := range []*trust.Store{store, open()} {
			if err := one.RefreshOnce(t.Context()); (err == nil) != good || one.Snapshot().Generation() != generation(want) {
				t.Errorf("%s: a store has %s, %v; want %s", reason, one.Snapshot().Generation(), err, generation(want))
			}
		}
		if text, err := fetch(t.Context()); (err == nil) != good || good && !bytes.Equal(text, want) {
			t.Errorf("%s: fetched %d bytes, %v", reason, len(text), err)
		}
	}
	step("the first keys", one, true)
	former := honest.Clone()
	if err := honest.Publish(two, trusttest.Rotated); err != nil {
		t.Fatal(err)
	}
	step("the rotation", two, true)
	shown = former
	step("the metadata from before it", two, false)
	for range 5 {
		if err := former.Publish(three, trusttest.None); err != nil {
			t.Fatal(err)
		}
	}
	step("later metadata by the first keys", two, false)
	shown = honest.Repository
	honest.publish(t, three)
	step("the repository again", three, true)
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
