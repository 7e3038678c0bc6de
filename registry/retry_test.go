package registry_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

func TestRetries(t *testing.T) {
	tests := []struct {
		reason   string
		do       registrytest.Action
		nth      int // 0: always
		deadline time.Duration
		timeout  time.Duration
		requests int
		kind     image.Kind
		says     string
	}{
		{reason: "a hiccup", do: registrytest.Status(503), nth: 1, requests: 2},
		{reason: "a limit without a time", do: registrytest.Status(429), nth: 1, requests: 2},
		{reason: "a limit that is over at once", do: registrytest.RetryAfter(429, "0"), nth: 1, requests: 2},
		{reason: "a limit until a date that has passed", do: registrytest.RetryAfter(503, "Wed, 21 Oct 2015 07:28:00 GMT"), nth: 1, requests: 2},
		{reason: "a time that is none", do: registrytest.RetryAfter(503, "soon"), nth: 1, requests: 2},
		{reason: "half a body", do: registrytest.Half(), nth: 1, requests: 2},
		{reason: "a try that hangs", do: registrytest.Hang(), nth: 1, timeout: 100 * time.Millisecond, requests: 2},
		{reason: "down for good", do: registrytest.Status(500), requests: 3, kind: image.Unavailable, says: "HTTP 500"},
		{reason: "hanging for good", do: registrytest.Hang(), timeout: 20 * time.Millisecond, requests: 3, kind: image.Unavailable, says: "did not answer in time (step: fetch manifest)"},
		{reason: "not there", do: registrytest.Status(404), nth: 1, requests: 1, kind: image.NotFound},
		{reason: "not for us", do: registrytest.Status(403), nth: 1, requests: 1, kind: image.Refused},
		{reason: "a bad request", do: registrytest.Status(400), nth: 1, requests: 1, kind: image.Corrupt},
		{reason: "a lie", do: registrytest.LieDigest(registrytest.DigestOf(nil)), nth: 1, requests: 1, kind: image.Corrupt},
		{reason: "a limit beyond the deadline", do: registrytest.RetryAfter(429, "20"), nth: 1, deadline: 10 * time.Second, requests: 1, kind: image.Unavailable, says: "after the deadline"},
		{reason: "a limit for hours", do: registrytest.RetryAfter(429, "7200"), nth: 1, requests: 1, kind: image.Unavailable, says: "retry after 7200"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{})
			server.PutImage("app", "v1", strings.Repeat("content", 100))
			server.SetFaults(registrytest.Fault{Kind: registrytest.Manifest, Nth: test.nth, Do: test.do})
			ctx := t.Context()
			if test.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.deadline)
				defer cancel()
			}
			var options []registry.Option
			if test.timeout > 0 {
				options = append(options, registry.WithTimeout(test.timeout))
			}
			client := newClient(t, registry.Config{}, options...)
			begin := time.Now()
			_, _, err := client.Manifest(ctx, repository(t, server.Host()+"/app"), "v1")
			if got := server.Count(""); got != test.requests {
				t.Errorf("%d requests, want %d", got, test.requests)
			}
			if time.Since(begin) > 9*time.Second {
				t.Error("it waited where it should have failed at once")
			}
			if test.kind == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantKind(t, err, test.kind)
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q does not say %q", err, test.says)
			}
		})
	}
}

func TestCancelledIsNotRetried(t *testing.T) {
	server := start(t, registrytest.Options{})
	entered := make(chan struct{}, 3)
	server.SetFaults(registrytest.Fault{Do: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			entered <- struct{}{}
			registrytest.Hang()(next).ServeHTTP(w, q)
		})
	}})
	client := newClient(t, registry.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := client.Resolve(ctx, image.MustParse(server.Host()+"/app:v1"))
	wantKind(t, err, image.Unavailable)
	if got := server.Count(""); got != 1 {
		t.Errorf("%d requests", got)
	}
	_, err = client.Resolve(ctx, image.MustParse(server.Host()+"/app:v1"))
	wantKind(t, err, image.Unavailable)
	if got := server.Count(""); got != 1 {
		t.Error("a request was made after the caller left")
	}
}

func TestASlowBodyIsReadToItsEnd(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	release := make(chan struct{})
	server.SetFaults(registrytest.Fault{Do: registrytest.Slow(release)})
	close(release)
	if _, _, err := newClient(t, registry.Config{}).Manifest(t.Context(), repository(t, server.Host()+"/app"), "v1"); err != nil {
		t.Error(err)
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	arrived, release := make(chan struct{}, 16), make(chan struct{})
	server.SetFaults(registrytest.Fault{Do: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			arrived <- struct{}{}
			<-release
			next.ServeHTTP(w, q)
		})
	}})
	client := newClient(t, registry.Config{}, registry.WithConcurrency(2, 8))
	ref := image.MustParse(server.Host() + "/app:v1")
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			if _, err := client.Resolve(t.Context(), ref); err != nil {
				t.Error(err)
			}
		})
	}
	<-arrived
	<-arrived
	// The third is not let in before one of the two is answered: a caller that waits
	// for a place leaves when its time is over, without a request.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client.Resolve(ctx, ref)
	wantKind(t, err, image.Unavailable)
	if got := server.Count(""); got != 2 {
		t.Errorf("%d requests at once, want 2", got)
	}
	close(release)
	group.Wait()
	if got := server.Count(""); got != 6 {
		t.Errorf("%d requests, want 6", got)
	}
}
