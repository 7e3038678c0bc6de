package registry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// counted lets a registry hang, and counts its requests.
func counted(arrived chan<- struct{}) registrytest.Action {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			arrived <- struct{}{}
			registrytest.Hang()(next).ServeHTTP(w, q)
		})
	}
}

// TestTenantsShareLanes: one tenant asks a thousand images of eight registries that
// never answer. It gets three quarters of the concurrency; another one's questions are all
// answered meanwhile, of a registry of its own and of one that both ask.
func TestTenantsShareLanes(t *testing.T) {
	arrived := make(chan struct{}, 1000)
	hangs := registrytest.Fault{Repository: "greedy/app", Do: counted(arrived)}
	var slow []*registrytest.Server
	for range 8 {
		slow = append(slow, start(t, registrytest.Options{Faults: []registrytest.Fault{hangs}}))
	}
	own := start(t, registrytest.Options{})
	for _, server := range []*registrytest.Server{slow[0], own} {
		server.PutImage("calm/app", "v1", "content")
	}
	client := newClient(t, registry.Config{})
	greedy, calm := client.For(registry.Caller{Tenant: "greedy"}, nil), client.For(registry.Caller{Tenant: "calm"}, &registry.Meter{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			_, err := greedy.Resolve(ctx, image.MustParse(fmt.Sprintf("%s/greedy/app:v%d", slow[i%len(slow)].Host(), i)))
			if failure, ok := errors.AsType[*registry.Error](err); !ok || failure.Kind != image.Unavailable {
				t.Errorf("greedy: %v", err)
			}
		})
	}
	for range 48 {
		<-arrived
	}
	for i := range 200 {
		server := []*registrytest.Server{slow[0], own}[i%2]
		if _, err := calm.Resolve(t.Context(), image.MustParse(server.Host()+"/calm/app:v1")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-arrived:
		t.Error("the greedy one has more than three quarters")
	default:
	}
	cancel()
	all.Wait()
}

// TestRegistryAnswers429: after a 429 a registry gets no more requests of that
// account, and the errors have the time of the next try; other accounts, and urgent requests,
// are as before.
func TestRegistryAnswers429(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	server.SetFaults(registrytest.Fault{Nth: 1, Do: registrytest.RetryAfter(429, "600")})
	book := ratelimit.New()
	admission := newClient(t, registry.Config{}, registry.WithAllowance(book, false))
	scan := newClient(t, registry.Config{}, registry.WithAllowance(book, true))
	ref := image.MustParse(server.Host() + "/app:v1")
	for i, client := range []*registry.Client{admission, admission, scan, admission.For(registry.Caller{Tenant: "other"}, nil)} {
		_, err := client.Resolve(t.Context(), ref)
		wantKind(t, err, image.Unavailable)
		if err == nil || !strings.Contains(err.Error(), "the next request is in") && !strings.Contains(err.Error(), "try again then") {
			t.Errorf("%d: %v: want when to try again", i, err)
		}
		if failure, ok := errors.AsType[*registry.Error](err); !ok || !failure.IsSilence() || !failure.IsLimited() {
			t.Errorf("%d: %v: want silence, so that mirrors are asked, of the account alone", i, err)
		}
	}
	if err := admission.Ping(t.Context(), server.Host()); err == nil {
		t.Error("it is pinged meanwhile")
	}
	if n := server.Count(""); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	if _, err := admission.For(registry.Caller{Account: "team"}, nil).Resolve(t.Context(), ref); err != nil {
		t.Errorf("another account: %v", err)
	}
}

// TestTokenServiceAnswers429 limits the registry that sends there.
func TestTokenServiceAnswers429(t *testing.T) {
	tokens := start(t, registrytest.Options{Faults: []registrytest.Fault{{Do: registrytest.RetryAfter(429, "600")}}})
	server := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Token, AnonymousPull: true, Realm: "http://" + tokens.Host() + "/v2/token/manifests/x"}})
	server.PutImage("app", "v1", "content")
	client := newClient(t, registry.Config{Realms: map[string][]string{server.Host(): {tokens.Host()}}})
	for range 3 {
		_, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
		wantKind(t, err, image.Unavailable)
	}
	if a, b := server.Count(""), tokens.Count(""); a != 1 || b != 1 {
		t.Errorf("%d requests and %d for tokens, want 1 and 1", a, b)
	}
}

// TestStoreAnswers429: a 429 of the host to which one repository's requests are redirected limits
// only requests to that host; for a redirect to the registry itself the registry is limited.
func TestStoreAnswers429(t *testing.T) {
	for _, elsewhere := range []bool{true, false} {
		store := start(t, registrytest.Options{Faults: []registrytest.Fault{{Do: registrytest.RetryAfter(429, "600")}}})
		server := start(t, registrytest.Options{})
		server.PutImage("app", "v1", "content")
		server.PutImage("bad", "v1", "content")
		to := "http://" + store.Host() + "/v2/bad/manifests/v1"
		faults := []registrytest.Fault{{Repository: "bad", Reference: "v1", Do: registrytest.RedirectTo(to)}}
		if !elsewhere {
			to = "http://" + server.Host() + "/v2/bad/manifests/v2"
			faults[0].Do = registrytest.RedirectTo(to)
			faults = append(faults, registrytest.Fault{Repository: "bad", Reference: "v2", Do: registrytest.RetryAfter(429, "600")})
		}
		server.SetFaults(faults...)
		client := newClient(t, registry.Config{})
		_, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/bad:v1"))
		wantKind(t, err, image.Unavailable)
		if n := store.Count(""); elsewhere && n != 1 {
			t.Errorf("the store is asked %d times, want once, since it sent Retry-After: %v", n, err)
		}
		_, err = client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
		if (err == nil) != elsewhere {
			t.Errorf("a 429 from elsewhere is %t, another repository: %v", elsewhere, err)
		}
	}
}

// TestTheScanLeavesHalf: a registry that allows ten questions an hour is asked five times
// by what can wait, and the rest is there for admission.
func TestTheScanLeavesHalf(t *testing.T) {
	server := start(t, registrytest.Options{PullLimit: 10})
	server.PutImage("app", "v1", "content")
	book := ratelimit.New()
	scan := newClient(t, registry.Config{}, registry.WithAllowance(book, true))
	asked := 0
	for range 20 {
		if _, _, err := scan.Manifest(t.Context(), repository(t, server.Host()+"/app"), "v1"); err == nil {
			asked++
		} else if !strings.Contains(err.Error(), "reserved for admission") {
			t.Error(err)
		}
	}
	if asked != 6 || server.Pulls() != 6 { // the answer of the sixth has less than half left
		t.Errorf("the scan asked %d times, the registry counts %d, want 6", asked, server.Pulls())
	}
	admission := newClient(t, registry.Config{}, registry.WithAllowance(book, false))
	for i := range 4 {
		if _, _, err := admission.Manifest(t.Context(), repository(t, server.Host()+"/app"), "v1"); err != nil {
			t.Errorf("admission, question %d: %v", i, err)
		}
	}
}

// TestARetryWaitsForTheRest: a short limit is waited for, together.
func TestARetryWaitsForTheRest(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	server.SetFaults(registrytest.Fault{Nth: 1, Do: registrytest.RetryAfter(429, "1")})
	client := newClient(t, registry.Config{})
	begun := time.Now()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took := time.Since(begun); took < time.Second {
		t.Errorf("all were answered after %v, before the registry wanted to be asked", took)
	}
}

func TestAllowanceWithoutABook(t *testing.T) {
	if _, err := registry.New(registry.Config{}, registry.WithAllowance(nil, false)); err == nil {
		t.Error("accepted")
	}
}

// TestApart: a tenant that has used its share is named, so that no other waits for its requests.
func TestApart(t *testing.T) {
	arrived := make(chan struct{}, 100)
	server := start(t, registrytest.Options{Faults: []registrytest.Fault{{Do: counted(arrived)}}})
	client := newClient(t, registry.Config{})
	greedy, calm := client.For(registry.Caller{Tenant: "greedy"}, nil), client.For(registry.Caller{Tenant: "calm"}, nil)
	here := repository(t, server.Host()+"/app")
	if got := greedy.Apart(here); got != "" {
		t.Errorf("at first: %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 14 {
		all.Go(func() { _, _ = greedy.Resolve(ctx, image.MustParse(fmt.Sprintf("%s/app:v%d", server.Host(), i))) })
	}
	for range 14 {
		<-arrived
	}
	if a, b, c := greedy.Apart(here), calm.Apart(here), client.Apart(here); a != "greedy" || b != "" || c != "" {
		t.Errorf("%q, %q, %q: want the one that has its share", a, b, c)
	}
	cancel()
	all.Wait()
}
