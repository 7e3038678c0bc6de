package registry_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// answering is a host that answers everything in one way.
func answering(status int, body string, headers ...string) registrytest.Action {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Add(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
}

// TestPing: only a registry's answer counts, not any 200.
func TestPing(t *testing.T) {
	const (
		json    = "application/json"
		page    = "<!doctype html><title>Sign in</title>"
		version = "Docker-Distribution-Api-Version"
		codes   = `{"errors":[{"code":"DENIED","message":"no"}]}`
	)
	for _, test := range []struct {
		reason string
		action registrytest.Action
		kind   image.Kind // "" means that a registry answers
	}{
		{"the docker registry", answering(200, "{}", version, "registry/2.0", "Content-Type", json), ""},
		{"no version, but an object", answering(200, "{}", "Content-Type", json), ""},
		{"no body, but a version", answering(200, "", version, "registry/2.0"), ""},
		{"neither", answering(200, ""), image.Corrupt},
		{"text", answering(200, "ok", "Content-Type", "text/plain"), image.Corrupt},
		{"JSON that is no object", answering(200, "null", "Content-Type", json), image.Corrupt},
		{"another version", answering(200, "", version, "2"), image.Corrupt},
		{"a page", registrytest.HTML(), image.Corrupt},
		{"a page under a registry's header", answering(200, page, version, "registry/2.0", "Content-Type", "text/html"), image.Corrupt},
		{"401 with a version", answering(401, page, version, "registry/2.0"), ""},
		{"403 with a version", answering(403, page, version, "registry/2.0"), ""},
		{"a challenge with a realm, which no client of registries can meet", answering(401, page, "WWW-Authenticate", `Digest realm="x"`), image.Corrupt},
		{"a request that the registry does not accept", answering(400, page), image.Corrupt},
		{"half an answer", answering(200, "{}", version, "registry/2.0", "Content-Length", "3"), image.Unavailable},
		{"a redirect to a page", registrytest.RedirectTo("/login"), image.NotFound},
		{"a Bearer challenge", answering(401, "", "WWW-Authenticate", `Bearer realm="https://auth.example/token"`), ""},
		{"a Basic challenge", answering(401, page, "WWW-Authenticate", `basic Realm="x"`), ""},
		{"the second challenge", answering(401, "", "WWW-Authenticate", "Negotiate", "WWW-Authenticate", `Basic realm="x"`), ""},
		{"401 with the error body", answering(401, codes), ""},
		{"a challenge of another kind", answering(401, page, "WWW-Authenticate", "Negotiate"), image.Corrupt},
		{"a challenge without realm", answering(401, page, "WWW-Authenticate", "Bearer"), image.Corrupt},
		{"401 without challenge", answering(401, page), image.Corrupt},
		{"403 with the error body", answering(403, codes), ""},
		{"403 of a proxy", answering(403, page), image.Corrupt},
		{"another server", answering(404, page), image.NotFound},
		{"a gateway without registry", answering(502, page, version, "registry/2.0"), image.Unavailable},
		{"a registry that wants to be left alone", answering(429, codes, version, "registry/2.0"), image.Unavailable},
		{"redirects without end", registrytest.RedirectLoop(), image.Corrupt},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{Faults: []registrytest.Fault{{Kind: registrytest.Ping, Do: test.action}}})
			err := newClient(t, registry.Config{}).Ping(t.Context(), server.Host())
			if test.kind == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			failure := wantFailure(t, err, test.kind)
			if n := server.Count("", registrytest.Ping); n != 1 && test.reason != "redirects without end" {
				t.Errorf("%d requests, want one", n)
			}
			if failure.Repository != "" || !strings.HasPrefix(err.Error(), "ping "+server.Host()+": ") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestPingAsksOnceAndSendsNoCredential: neither retries nor tokens.
func TestPingAsksOnceAndSendsNoCredential(t *testing.T) {
	for _, auth := range []registrytest.Auth{
		{Scheme: registrytest.Basic, Username: "user", Password: "secret"},
		{Scheme: registrytest.Token, Username: "user", Password: "secret"},
	} {
		server := start(t, registrytest.Options{Auth: auth})
		source := registry.Source{Name: "test", Keychain: static{config: authn.AuthConfig{Username: "user", Password: "secret"}}}
		client := newClient(t, registry.Config{Credentials: []registry.Source{source}})
		if err := client.Ping(t.Context(), server.Host()); err != nil {
			t.Fatal(err)
		}
		if n := server.Count(""); n != 1 || server.SawAuthorization() {
			t.Errorf("%d requests, a credential: %t; want one without", n, server.SawAuthorization())
		}
	}
	server := start(t, registrytest.Options{Faults: []registrytest.Fault{{Do: registrytest.Status(503)}}})
	wantKind(t, newClient(t, registry.Config{}).Ping(t.Context(), server.Host()), image.Unavailable)
	if n := server.Count(""); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}

// TestPingGoesTheSameWay: a host's own settings, TLS that is learnt, and bounds
// hold for it, too.
func TestPingGoesTheSameWay(t *testing.T) {
	mine, pool := clientCertificate(t)
	mutual := registrytest.Options{TLS: true, Names: []string{"registry.example"}, ClientCAs: pool}
	for _, test := range []struct {
		reason  string
		options registrytest.Options
		host    func(*registrytest.Server) *registry.Host
		says    string
	}{
		{"mutual TLS", mutual, trusting(mine), ""},
		{"mutual TLS without certificate", mutual, trusting(), "client certificate"},
		{"plain HTTP", registrytest.Options{}, func(*registrytest.Server) *registry.Host { return &registry.Host{PlainHTTP: true} }, ""},
		{"plain HTTP, not configured", registrytest.Options{}, func(*registrytest.Server) *registry.Host { return &registry.Host{} }, "no TLS"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, test.options)
			host := "registry.example:" + server.Port()
			config := named(registry.Config{Hosts: map[string]registry.Host{host: *test.host(server)}}, "registry.example")
			err := newClient(t, config).Ping(t.Context(), host)
			if test.says == "" && err != nil || test.says != "" && (image.KindOf(err) != image.Unavailable || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v, want one that contains %q", err, test.says)
			}
		})
	}
	t.Run("a loopback host that wants TLS", func(t *testing.T) {
		server := start(t, registrytest.Options{TLS: true})
		if err := newClient(t, registry.Config{RootCAs: server.CertPool()}).Ping(t.Context(), server.Host()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a host that has no TLS, for a client that gave it up", func(t *testing.T) {
		server := start(t, registrytest.Options{})
		client := newClient(t, named(registry.Config{}, "registry.example")).Insecure()
		if err := client.Ping(t.Context(), "registry.example:"+server.Port()); err != nil {
			t.Error(err)
		}
	})
	t.Run("an address that is refused", func(t *testing.T) {
		server := start(t, registrytest.Options{})
		config := named(registry.Config{PlainHTTP: []string{"registry.example:" + server.Port()}}, "registry.example")
		config.Loopback = nil
		wantKind(t, newClient(t, config).Ping(t.Context(), "registry.example:"+server.Port()), image.Unavailable)
		if server.Count("") != 0 {
			t.Error("it was asked")
		}
	})
	t.Run("a host that hangs", func(t *testing.T) {
		server := start(t, registrytest.Options{Faults: []registrytest.Fault{{Do: registrytest.Hang()}}})
		err := newClient(t, registry.Config{}, registry.WithTimeout(50*time.Millisecond)).Ping(t.Context(), server.Host())
		wantKind(t, err, image.Unavailable)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	t.Run("requests that are counted", func(t *testing.T) {
		server := start(t, registrytest.Options{})
		var meter registry.Meter
		if err := newClient(t, registry.Config{}).With(&meter).Ping(t.Context(), server.Host()); err != nil || meter.Requests() != 1 {
			t.Errorf("%d requests, %v", meter.Requests(), err)
		}
	})
}

func TestPingRefusesInvalidHost(t *testing.T) {
	client := newClient(t, registry.Config{})
	for _, name := range []string{"", "mirror", "host.example/path", "http://host.example", "host.example:0", "user@host.example", "host.example/", "../x", "host.example?q"} {
		if err := client.Ping(t.Context(), name); image.KindOf(err) != image.Corrupt {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestSilence: failures that one user can cause by an image or a credential
// do not count against a registry.
func TestSilence(t *testing.T) {
	ask := func(t *testing.T, fault registrytest.Action, change func(*registry.Client) *registry.Client, sources ...registry.Source) *registry.Error {
		t.Helper()
		server := start(t, registrytest.Options{Faults: []registrytest.Fault{{Kind: registrytest.Manifest, Do: fault}}})
		server.PutImage("app", "v1", "content")
		client := newClient(t, registry.Config{Credentials: sources})
		_, err := change(client).Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
		failure, ok := errors.AsType[*registry.Error](err)
		if !ok {
			t.Fatal(err)
		}
		return failure
	}
	plain := func(c *registry.Client) *registry.Client { return c }
	doubting := func(c *registry.Client) *registry.Client {
		return c.From(registry.Provenance{FailedLookups: "secret pull could not be read"})
	}
	for _, test := range []struct {
		reason string
		fault  registrytest.Action
		change func(*registry.Client) *registry.Client
		want   bool
	}{
		{"an error of its own", registrytest.Status(503), plain, true},
		{"too many requests", registrytest.Status(429), plain, true},
		{"a gateway without registry", registrytest.Status(502), plain, true},
		{"not there", registrytest.Status(404), plain, false},
		{"refused", registrytest.Status(403), plain, false},
		{"an error of its own that does not pass", registrytest.Status(501), plain, true},
		{"a request that the registry does not accept", registrytest.Status(400), plain, false},
		{"an image that contradicts itself", registrytest.LieDigest("x"), plain, false},
		{"not there, without access to a credential", registrytest.Status(404), doubting, false},
		{"refused, without access to a credential", registrytest.Status(401), doubting, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			failure := ask(t, test.fault, test.change)
			if failure.IsSilence() != test.want || image.IsByHost(failure) {
				t.Errorf("silence %t: %v", failure.IsSilence(), failure)
			}
			if failure.HasAnswered() != (test.reason != "an image that contradicts itself") || failure.IsLimited() != (test.reason == "too many requests") {
				t.Errorf("answered %t, limited %t: %v", failure.HasAnswered(), failure.IsLimited(), failure)
			}
		})
	}
	t.Run("a credential that cannot be had", func(t *testing.T) {
		challenge := registrytest.Status(401, "WWW-Authenticate", `Basic realm="x"`)
		if failure := ask(t, challenge, plain, registry.Source{Name: "broken", Keychain: brokenKeychain{}}); failure.Kind != image.Unavailable || failure.IsSilence() {
			t.Errorf("silence %t: %v", failure.IsSilence(), failure)
		}
	})
	t.Run("an answer that is late", func(t *testing.T) {
		server := start(t, registrytest.Options{Faults: []registrytest.Fault{{Do: registrytest.Hang()}}})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if failure := wantFailure(t, newClient(t, registry.Config{}).Ping(ctx, server.Host()), image.Unavailable); !failure.IsSilence() {
			t.Error(failure)
		}
	})
	t.Run("a request that was never sent, since others wait for a slow host", func(t *testing.T) {
		entered := make(chan struct{})
		slow := start(t, registrytest.Options{Faults: []registrytest.Fault{{Do: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				close(entered)
				registrytest.Hang()(next).ServeHTTP(w, q)
			})
		}}}})
		healthy := start(t, registrytest.Options{})
		client := newClient(t, registry.Config{}, registry.WithConcurrency(1, 1))
		held, release := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = client.Ping(held, slow.Host()) }()
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, resolved := client.Resolve(ctx, image.MustParse(healthy.Host()+"/app:v1"))
		for _, err := range []error{resolved, client.Ping(ctx, healthy.Host())} {
			if failure := wantFailure(t, err, image.Unavailable); failure.IsSilence() {
				t.Error(failure)
			}
		}
		release()
		<-done
		if healthy.Count("") != 0 {
			t.Error("it was asked")
		}
	})
	t.Run("no answer", func(t *testing.T) {
		server := registrytest.Start(registrytest.Options{})
		server.Close()
		failure, ok := errors.AsType[*registry.Error](newClient(t, registry.Config{}).Ping(t.Context(), server.Host()))
		if !ok || !failure.IsSilence() || failure.HasAnswered() || failure.IsLimited() {
			t.Errorf("%v", failure)
		}
	})
}

// TestPingAfterDeadline: no request is made after the deadline, and its absence
// does not count against a registry.
func TestPingAfterDeadline(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	past, cancelPast := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelPast()
	left, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		reason string
		ctx    context.Context
		good   bool
	}{{"in time", t.Context(), true}, {"its time is over", past, false}, {"the caller has left", left, false}} {
		var meter registry.Meter
		client := newClient(t, registry.Config{}).With(&meter)
		_, resolved := client.Resolve(test.ctx, image.MustParse(server.Host()+"/app:v1"))
		for _, err := range []error{resolved, client.Ping(test.ctx, server.Host())} {
			if (err == nil) != test.good {
				t.Errorf("%s: %v", test.reason, err)
			}
			if err != nil && wantFailure(t, err, image.Unavailable).IsSilence() {
				t.Errorf("%s: taken for silence: %v", test.reason, err)
			}
		}
		if asked := meter.Requests(); (asked > 0) != test.good {
			t.Errorf("%s: %d requests", test.reason, asked)
		}
	}
}

type brokenKeychain struct{}

func (brokenKeychain) Resolve(authn.Resource) (authn.Authenticator, error) {
	return nil, errors.New("the file is broken")
}

// FuzzPing: whatever answers, only the statuses of a registry count, and a message
// has one line.
func FuzzPing(f *testing.F) {
	f.Add(uint16(200), "registry/2.0", "", []byte("{}"))
	f.Add(uint16(401), "", `Bearer realm="x"`, []byte(nil))
	f.Add(uint16(307), "x", "Basic", []byte("<html>\n"))
	var answer atomic.Pointer[http.HandlerFunc]
	server := registrytest.Start(registrytest.Options{Faults: []registrytest.Fault{{Do: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { (*answer.Load())(w, q) })
	}}}})
	f.Cleanup(server.Close)
	client, err := registry.New(registry.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, status uint16, version, challenge string, body []byte) {
		status = 200 + status%400
		handle := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Docker-Distribution-Api-Version", version)
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(int(status))
			_, _ = w.Write(body)
		})
		answer.Store(&handle)
		err := client.Ping(t.Context(), server.Host())
		if err == nil && status != 200 && status != 401 && status != 403 {
			t.Errorf("%d is a registry's answer", status)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\r\n") || image.KindOf(err) == "") {
			t.Errorf("%q", err)
		}
	})
}
