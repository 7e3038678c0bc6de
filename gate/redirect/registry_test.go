package redirect_test

import (
	"context"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/health"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// wired is a session over the product's client.
type wired struct{ *registry.Client }

func (wired) Scope() string { return "" }

// Resolve implements redirect.Session: the client pins a digest unasked.
func (w wired) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	pinned, err := w.Client.Resolve(ctx, ref)
	if err != nil || ref.Digest().IsZero() {
		return pinned, err
	}
	return w.Describe(ctx, pinned)
}

func newClient(t testing.TB) *registry.Client {
	t.Helper()
	client, err := registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func newChooser(t testing.TB, with ...redirect.Option) *redirect.Chooser {
	t.Helper()
	c, err := redirect.New(with...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// over is a question about app:v1 at real registries.
func over(client *registry.Client, servers ...*registrytest.Server) redirect.Request {
	route := &mirror.Route{Mirror: "RegistryMirror/test[0]", When: mirror.Verified}
	for _, server := range servers {
		route.Candidates = append(route.Candidates, mirror.Candidate{Ref: image.MustParse(server.Host() + "/app:v1")})
	}
	return redirect.Request{Route: route, Open: func(context.Context, image.Repository) (redirect.Session, error) {
		return wired{client}, nil
	}}
}

func start(t testing.TB) *registrytest.Server {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	return server
}

// TestRealRegistries: requests are exact, as the registries see them.
func TestRealRegistries(t *testing.T) {
	for _, test := range []struct {
		reason   string
		prepare  func(first, second *registrytest.Server)
		states   string
		requests [2]int
	}{
		{"both have it", func(first, second *registrytest.Server) {
			first.PutImage("app", "v1", "image")
			second.PutImage("app", "v1", "image")
		}, "chosen not-asked", [2]int{1, 0}},
		{"the first lags", func(first, second *registrytest.Server) {
			first.PutImage("app", "v1", "older")
			second.PutImage("app", "v1", "image")
		}, "differs chosen", [2]int{2, 1}},
		{"the first lags, and has it", func(first, _ *registrytest.Server) {
			first.PutImage("app", "v0", "image")
			first.PutImage("app", "v1", "older")
		}, "chosen not-asked", [2]int{2, 0}},
		{"the first has nothing", func(_, second *registrytest.Server) { second.PutImage("app", "v1", "image") }, "missing chosen", [2]int{2, 1}},
		{"the first refuses", func(first, second *registrytest.Server) {
			first.SetFaults(registrytest.Fault{Do: registrytest.Status(403)})
			second.PutImage("app", "v1", "image")
		}, "failed chosen", [2]int{1, 1}},
		{"the first is a page", func(first, second *registrytest.Server) {
			first.SetFaults(registrytest.Fault{Do: registrytest.HTML()})
			second.PutImage("app", "v1", "image")
		}, "failed chosen", [2]int{2, 1}}, // HEAD, and GET for the digest
	} {
		t.Run(test.reason, func(t *testing.T) {
			first, second := start(t), start(t)
			digest := image.MustParseDigest(registrytest.New(registrytest.Options{}).PutImage("app", "v1", "image").Digest)
			test.prepare(first, second)
			c := newChooser(t)
			q := over(newClient(t), first, second)
			choice := c.Choose(t.Context(), q, c.Begin(t.Context(), q), digest)
			want(t, "states", states(choice.Attempts), test.states)
			if got := [2]int{first.Count(""), second.Count("")}; got != test.requests {
				t.Errorf("%d requests, want %d", got, test.requests)
			}
			for _, r := range append(first.Requests(), second.Requests()...) {
				if r.Kind != registrytest.Manifest {
					t.Error(r)
				}
			}
			if _, known := c.Remembered(t.Context(), q, digest); known == (choice.Attempts[0].State == redirect.Failed) {
				t.Errorf("remembered: %t", known)
			}
		})
	}
}

// TestFailoverAndReturn: a registry that dies is asked once, rests, and is used
// again when a probe finds it.
func TestFailoverAndReturn(t *testing.T) {
	first, second := start(t), start(t)
	digest := image.MustParseDigest(first.PutImage("app", "v1", "image").Digest)
	second.PutImage("app", "v1", "image")
	client := newClient(t)
	opened, closed := make(chan struct{}, 10), make(chan struct{}, 10)
	breaker, err := health.New(health.Config{Probe: client.Ping}, health.WithRest(10*time.Millisecond, 20*time.Millisecond),
		health.WithObserver(func(s health.State) {
			switch {
			case s.Registry != first.Host():
			case s.Phase == health.Open:
				opened <- struct{}{}
			case s.Phase == health.Closed:
				closed <- struct{}{}
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer breaker.Close()
	c := newChooser(t, redirect.WithHealth(breaker), redirect.WithAges(0, 0, 0))
	q := over(client, first, second)

	first.SetFaults(registrytest.Fault{Do: registrytest.Status(502)})
	want(t, "states", states(c.Choose(t.Context(), q, c.Begin(t.Context(), q), digest).Attempts), "failed chosen")
	<-opened // by the probe that follows an error of the registry's own
	asked := first.Count("", registrytest.Manifest)
	for range 10 {
		want(t, "states", states(c.Choose(t.Context(), q, c.Begin(t.Context(), q), digest).Attempts), "resting chosen")
	}
	if n := first.Count("", registrytest.Manifest); n != asked {
		t.Errorf("%d requests while it rests", n-asked)
	}
	first.SetFaults()
	<-closed
	want(t, "states", states(c.Choose(t.Context(), q, c.Begin(t.Context(), q), digest).Attempts), "chosen not-asked")
}

func TestNewRefuses(t *testing.T) {
	for name, option := range map[string]redirect.Option{
		"no health": redirect.WithHealth(nil), "no time": redirect.WithTimeout(0), "no clock": redirect.WithClock(nil),
		"an age below nothing": redirect.WithAges(time.Minute, time.Minute, -1),
	} {
		if _, err := redirect.New(option); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkRemembered(b *testing.B) {
	for _, when := range []mirror.When{mirror.Verified, mirror.Always} {
		b.Run(string(when), func(b *testing.B) {
			server := start(b)
			digest := image.MustParseDigest(server.PutImage("app", "v1", "image").Digest)
			breaker, err := health.New(health.Config{Probe: func(context.Context, string) error { return nil }})
			if err != nil {
				b.Fatal(err)
			}
			defer breaker.Close()
			c := newChooser(b, redirect.WithHealth(breaker))
			q := over(newClient(b), server)
			q.Route.When = when
			c.Choose(b.Context(), q, nil, digest)
			server.Reset()
			b.ReportAllocs()
			for b.Loop() {
				if _, known := c.Remembered(b.Context(), q, digest); !known {
					b.Fatal("forgotten")
				}
			}
			if server.Count("") != 0 {
				b.Error("it was asked")
			}
		})
	}
}
