package trust_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/verify/trust"
)

// TestRestartWithoutRepository: a start that cannot reach the repository begins with the
// root that was read last, and not with an older one that the program carries.
func TestRestartWithoutRepository(t *testing.T) {
	one := newSigstore("one")
	repository := newRepository(t)
	repository.publish(t, one.TrustedRoot())
	server := httptest.NewServer(repository)
	defer server.Close()
	of := func(folder, address string) *trust.Store {
		return newStore(t, trust.Options{TUF: &trust.TUF{URL: address, Root: repository.root, Client: server.Client(), CachePath: folder}})
	}
	folder := t.TempDir()
	before := of(folder, server.URL)
	if err := before.RefreshOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	read, embedded := before.Snapshot().Generation(), newStore(t, trust.Options{}).Snapshot().Generation()
	confirmed := before.Status().Loaded

	again := of(folder, server.URL)
	if got := again.Snapshot().Generation(); got != read {
		t.Errorf("it starts with %s, want the last known good, %s", got, read)
	}
	if status := again.Status(); status.Loaded.After(confirmed) || !strings.Contains(status.Origin, "last read") {
		t.Errorf("not confirmed since %s, and the status is %+v", confirmed, status)
	}
	if err := again.RefreshOnce(t.Context()); err != nil || strings.Contains(again.Status().Origin, "last read") {
		t.Errorf("the repository has confirmed it, and the status is %+v (%v)", again.Status(), err)
	}
	file := filepath.Join(folder, "last_trusted_root.json")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ahead := strings.Replace(string(good), `"confirmed":"20`, `"confirmed":"29`, 1)
	if err := os.WriteFile(file, []byte(ahead), 0o600); err != nil || ahead == string(good) {
		t.Fatal(err)
	}
	if behind := of(folder, server.URL); behind.Snapshot().Generation() != read || behind.Status().Loaded.After(time.Now()) {
		t.Errorf("a clock that is behind: it starts with %s of %s, want the last known good, %s", behind.Snapshot().Generation(), behind.Status().Loaded, read)
	}
	for reason, text := range map[string]string{
		"no JSON":            "{",
		"no root":            strings.Replace(string(good), `"mediaType"`, `"media"`, 1),
		"more than is read":  string(good) + strings.Repeat(" ", 2*trust.MaxRoot),
		"another repository": strings.Replace(string(good), server.URL, "https://other.example", 1),
		"no first root":      strings.Replace(string(good), `"first"`, `"last"`, 1),
	} {
		if text == string(good) {
			t.Fatalf("%s: nothing is different", reason)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := of(folder, server.URL).Snapshot().Generation(); got != embedded {
			t.Errorf("%s: it starts with %s, want the embedded root", reason, got)
		}
	}
	if got := of(t.TempDir(), server.URL).Snapshot().Generation(); got != embedded {
		t.Errorf("without a folder's content it starts with %s, want the embedded root", got)
	}
}

// TestLastOfAnotherFirstRoot: the last root of a repository counts for the same first root.json and target alone.
// After a compromise of its keys, a new first root is configured at the same address.
func TestLastOfAnotherFirstRoot(t *testing.T) {
	stolen := newRepository(t)
	stolen.publish(t, newSigstore("stolen").TrustedRoot())
	server := httptest.NewServer(stolen)
	defer server.Close()
	configured := newSigstore("configured").TrustedRoot()
	folder := t.TempDir()
	of := func(first []byte, target string, client *http.Client) *trust.Store {
		return newStore(t, trust.Options{TrustedRoot: configured, TUF: &trust.TUF{URL: server.URL, Root: first, Target: target, Client: client, CachePath: folder}})
	}
	before := of(stolen.root, "", server.Client())
	if err := before.RefreshOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	last, own := before.Snapshot().Generation(), newStore(t, trust.Options{TrustedRoot: configured}).Snapshot().Generation()
	unreachable := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no route to host") })}
	for _, row := range []struct {
		reason string
		first  []byte
		target string
		want   string
	}{
		{"the same", stolen.root, "", last},
		{"new keys", newRepository(t).root, "", own},
		{"another target", stolen.root, "other.json", own},
	} {
		again := of(row.first, row.target, unreachable)
		if err := again.RefreshOnce(t.Context()); err == nil || again.Snapshot().Generation() != row.want {
			t.Errorf("%s: starts with %s of %s (%v), want %s", row.reason, again.Snapshot().Generation(), again.Status().Origin, err, row.want)
		}
	}
}

// offline answers from a repository in memory, unless it is away.
type offline struct {
	*repository
	away atomic.Bool
}

func (o *offline) RoundTrip(request *http.Request) (*http.Response, error) {
	if o.away.Load() {
		return nil, errors.New("no route to host")
	}
	recorder := httptest.NewRecorder()
	o.ServeHTTP(recorder, request)
	return recorder.Result(), nil
}

// TestMonthWithoutRefresh: a repository that is unreachable, and one that an on-path attacker
// freezes. Either way the root stays in use, no older one is taken, and the status has the
// time of the last confirmation; of a frozen one, as soon as its metadata has expired.
func TestMonthWithoutRefresh(t *testing.T) {
	const day = 24 * time.Hour
	for _, row := range []struct {
		reason string
		away   bool
		since  time.Duration // of the last confirmation of the root
		says   string
	}{
		{"away", true, 0, "no route to host"},
		{"frozen", false, 31 * day, "expired"}, // publish gives a month
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two := newSigstore("one"), newSigstore("two")
				from := &offline{repository: newRepository(t)}
				from.publish(t, one.TrustedRoot())
				store := newStore(t, trust.Options{TUF: &trust.TUF{
					URL: "https://tuf.example", Root: from.root, Client: &http.Client{Transport: from}, CachePath: t.TempDir(),
				}})
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { _ = store.Refresh(ctx, nil) }()
				began := time.Now()
				synctest.Wait()
				first := store.Snapshot()
				if store.Status().Err != nil || first.Origin() != "TUF repository https://tuf.example" {
					t.Fatalf("the first refresh: %+v", store.Status())
				}
				from.away.Store(row.away)
				<-time.After(40 * day)
				synctest.Wait()
				status := store.Status()
				if store.Snapshot() != first {
					t.Error("the root did not stay")
				}
				if status.Err == nil || !strings.Contains(status.Err.Error(), row.says) {
					t.Errorf("the last refresh came to %v, want %q", status.Err, row.says)
				}
				if confirmed := status.Loaded.Sub(began); confirmed > row.since || confirmed < row.since-2*day {
					t.Errorf("it was last confirmed after %s, want %s", confirmed, row.since)
				}
				from.away.Store(false)
				from.publish(t, two.TrustedRoot())
				<-time.After(day)
				synctest.Wait()
				if store.Status().Err != nil || store.Snapshot() == first {
					t.Errorf("the repository is back, and %+v", store.Status())
				}
			})
		})
	}
}
