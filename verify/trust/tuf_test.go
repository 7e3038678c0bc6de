package trust_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/quaymaster/quaymaster/verify/trust"
)

func newClient() *http.Client { return &http.Client{} }

// repository is a TUF repository in memory.
type repository struct {
	signer signature.Signer
	root   []byte

	mu      sync.Mutex
	version int64
	files   map[string][]byte
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{files: make(map[string][]byte)}
	if r.signer, err = signature.LoadSigner(private, crypto.Hash(0)); err != nil {
		t.Fatal(err)
	}
	key, err := metadata.KeyFromPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	root := metadata.Root(time.Now().AddDate(1, 0, 0))
	for _, role := range []string{"root", "timestamp", "snapshot", "targets"} {
		if err := root.Signed.AddKey(key, role); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := root.Sign(r.signer); err != nil {
		t.Fatal(err)
	}
	if r.root, err = root.ToBytes(false); err != nil {
		t.Fatal(err)
	}
	return r
}

// publish makes content the trusted root of a new version.
func (r *repository) publish(t *testing.T, content []byte) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version++
	until := time.Now().AddDate(0, 1, 0)
	sum := sha256.Sum256(content)
	name := "trusted_root.json"
	r.files["/targets/"+hex.EncodeToString(sum[:])+"."+name] = content

	targets, snapshot, timestamp := metadata.Targets(until), metadata.Snapshot(until), metadata.Timestamp(until)
	target, err := metadata.TargetFile().FromBytes(name, content)
	if err != nil {
		t.Fatal(err)
	}
	targets.Signed.Targets[name] = target
	targets.Signed.Version, snapshot.Signed.Version, timestamp.Signed.Version = r.version, r.version, r.version
	snapshot.Signed.Meta["targets.json"] = metadata.MetaFile(r.version)
	timestamp.Signed.Meta["snapshot.json"] = metadata.MetaFile(r.version)
	version := string(rune('0' + r.version))
	put(t, r, "/"+version+".targets.json", targets)
	put(t, r, "/"+version+".snapshot.json", snapshot)
	put(t, r, "/timestamp.json", timestamp)
}

func put[T metadata.Roles](t *testing.T, r *repository, path string, m *metadata.Metadata[T]) {
	t.Helper()
	if _, err := m.Sign(r.signer); err != nil {
		t.Fatal(err)
	}
	data, err := m.ToBytes(false)
	if err != nil {
		t.Fatal(err)
	}
	r.files[path] = data
}

func (r *repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	data, ok := r.files[request.URL.Path]
	r.mu.Unlock()
	if !ok {
		http.NotFound(w, request)
		return
	}
	_, _ = w.Write(data)
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
			t.Errorf("%s: the old snapshot did not stay, or the status does not tell: %+v", reason, status)
		}
	}
}

// TestRefreshRefuses: what the repository's keys did not sign is not taken.
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
			t.Errorf("told of %d failures (%v), want 3: at once and after each hour", len(failures), failures)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
