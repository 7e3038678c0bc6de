package registrytest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/registry/registrytest"
)

func TestFaults(t *testing.T) {
	other := registrytest.DigestOf([]byte("other"))
	tests := []struct {
		reason string
		fault  registrytest.Fault
		check  func(head, []byte) bool
	}{
		{"no fault", registrytest.Fault{Reference: "none", Do: registrytest.Status(500)},
			func(r head, _ []byte) bool { return r.StatusCode == http.StatusOK }},
		{"status", registrytest.Fault{Kind: registrytest.Manifest, Do: registrytest.RetryAfter(429, "7")},
			func(r head, _ []byte) bool {
				return r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") == "7"
			}},
		{"another method", registrytest.Fault{Method: "HEAD", Do: registrytest.Status(500)},
			func(r head, _ []byte) bool { return r.StatusCode == http.StatusOK }},
		{"second request only", registrytest.Fault{Nth: 2, Do: registrytest.Status(500)},
			func(r head, _ []byte) bool { return r.StatusCode == http.StatusOK }},
		{"lie", registrytest.Fault{Do: registrytest.LieDigest(other)},
			func(r head, _ []byte) bool { return r.Header.Get("Docker-Content-Digest") == other }},
		{"other body", registrytest.Fault{Do: registrytest.Body([]byte("other"))},
			func(_ head, b []byte) bool { return string(b) == "other" }},
		{"page", registrytest.Fault{Do: registrytest.HTML()},
			func(r head, b []byte) bool {
				return r.StatusCode == http.StatusOK && strings.Contains(string(b), "<!doctype")
			}},
		{"wrong type", registrytest.Fault{Do: registrytest.MediaType("text/plain")},
			func(r head, _ []byte) bool { return r.Header.Get("Content-Type") == "text/plain" }},
		{"bomb", registrytest.Fault{Do: registrytest.GzipBomb(1 << 20)},
			func(_ head, b []byte) bool { return len(b) >= 1<<20 }},
		{"oversize", registrytest.Fault{Do: registrytest.Oversize("a/b", 1<<20)},
			func(_ head, b []byte) bool { return len(b) > 1<<20 }},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{Faults: []registrytest.Fault{test.fault}})
			server.PutImage("app", "v1", "content")
			answer, body := get(t, http.MethodGet, server.URL()+"/v2/app/manifests/v1")
			if !test.check(answer, body) {
				t.Errorf("%s %v %.80q", answer.Status, answer.Header, body)
			}
		})
	}
}

func TestFlip(t *testing.T) {
	server := start(t, registrytest.Options{})
	a, b := server.PutImage("app", "a", "a"), server.PutImage("app", "b", "b")
	server.SetFaults(registrytest.Fault{Reference: "moving", Do: registrytest.Flip("a", "b")})
	for i, want := range []string{a.Digest, b.Digest, b.Digest} {
		answer, _ := get(t, http.MethodHead, server.URL()+"/v2/app/manifests/moving")
		if got := answer.Header.Get("Docker-Content-Digest"); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
}

func TestBrokenBodies(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", strings.Repeat("content", 1000))
	url := server.URL() + "/v2/app/manifests/v1"

	server.SetFaults(registrytest.Fault{Do: registrytest.Half()})
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a body read with %v", err)
	}
	_ = answer.Body.Close()

	release := make(chan struct{})
	server.SetFaults(registrytest.Fault{Do: registrytest.Slow(release)})
	answer, err = http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := answer.Body.Read(make([]byte, 1)); err != nil {
		t.Errorf("the first half of a slow body: %v", err)
	}
	close(release)
	if _, err := io.ReadAll(answer.Body); err != nil {
		t.Errorf("the rest of a slow body: %v", err)
	}
	_ = answer.Body.Close()

	server.SetFaults(registrytest.Fault{Do: registrytest.Hang()})
	ctx, cancel := context.WithCancel(t.Context())
	q, _ := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	failed := make(chan error)
	go func() {
		answer, err := http.DefaultClient.Do(q)
		if err == nil {
			_ = answer.Body.Close()
		}
		failed <- err
	}()
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("a hanging request ended with %v", err)
	}
}

func TestCredentialFishing(t *testing.T) {
	fisher := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Token}})
	server := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Token, Realm: fisher.URL() + "/token"}})
	answer, _ := get(t, http.MethodGet, server.URL()+"/v2/app/manifests/v1")
	if got := answer.Header.Get("Www-Authenticate"); !strings.Contains(got, fisher.Host()) || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("%s, challenge %q", answer.Status, got)
	}
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, fisher.URL()+"/token", nil)
	q.SetBasicAuth("user", "secret")
	if answer, err := http.DefaultClient.Do(q); err != nil {
		t.Fatal(err)
	} else {
		_ = answer.Body.Close()
	}
	if !fisher.SawAuthorization() || server.SawAuthorization() {
		t.Error("the log does not name the server that got the credential")
	}
}
