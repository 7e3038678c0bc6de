package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func (f *fixture) plain(t *testing.T, path string) (int, string) {
	t.Helper()
	response, body, err := get(t, http.DefaultClient, "http://"+f.server.PlainAddress().String()+path)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

func TestReadyz(t *testing.T) {
	var trust atomic.Pointer[error]
	missing := errors.New("no trusted root\nwas loaded")
	trust.Store(&missing)
	var broken atomic.Bool
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, func(s *Server) {
		s.config.Checks = []Check{
			{"policies", func() error { return nil }},
			{"trust", func() error { return *trust.Load() }},
			{"certificate", func() error {
				if broken.Load() {
					panic("broken")
				}
				return nil
			}},
		}
	})
	if status, body := f.plain(t, "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("healthz: %d %q", status, body)
	}
	const want = "ok: drain\nok: policies\nnot ready: trust: no trusted root was loaded\nok: certificate\n"
	for range 3 {
		if status, body := f.plain(t, "/readyz"); status != 503 || body != want {
			t.Errorf("readyz: %d %q", status, body)
		}
	}
	trust.Store(new(error))
	if status, body := f.plain(t, "/readyz"); status != 200 || strings.Contains(body, "not") {
		t.Errorf("readyz with trust: %d %q", status, body)
	}
	broken.Store(true)
	if status, body := f.plain(t, "/readyz"); status != 503 || !strings.Contains(body, "certificate: internal error: broken") {
		t.Errorf("readyz with a check that panics: %d %q", status, body)
	}
	if status, _ := f.plain(t, "/debug/pprof/"); status != 404 {
		t.Errorf("profiles are on the plain address: %d", status)
	}
}

func TestProfiling(t *testing.T) {
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, nil, WithProfiling("127.0.0.1:0"))
	response, body, err := get(t, http.DefaultClient, "http://"+f.server.ProfilingAddress().String()+"/debug/pprof/")
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(body, "goroutine") {
		t.Errorf("%v %v", response, err)
	}
}

// TestDrainLosesNoRequest has two replicas behind a balancer that follows
// readiness, and clients that never stop asking while one of them leaves.
func TestDrainLosesNoRequest(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("http2=%t", http2), func(t *testing.T) {
			echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
				writeText(w, http.StatusOK, string(body))
			})
			endpoints := map[string]Endpoint{"/mutate": {Handler: echo}}
			leaves := start(t, endpoints, nil, WithDrainDelay(400*time.Millisecond))
			stays := start(t, endpoints, func(s *Server) {
				s.endpoints.TLSConfig.GetCertificate = leaves.server.config.Certificates.GetCertificate
			})
			client := leaves.client(t, http2, nil)
			client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				to := leaves.server
				if to.draining.Load() {
					to = stays.server
				}
				return (&net.Dialer{}).DialContext(ctx, network, to.Address().String())
			}
			var asked, lost atomic.Int64
			stop := make(chan struct{})
			var clients sync.WaitGroup
			for i := range 16 {
				clients.Go(func() {
					for n := 0; ; n++ {
						select {
						case <-stop:
							return
						default:
						}
						asked.Add(1)
						want := fmt.Sprintf("%d/%d", i, n)
						if err := post(t.Context(), client, leaves.url("/mutate"), want); err != nil {
							lost.Add(1)
							t.Errorf("request %s: %v", want, err)
							return
						}
					}
				})
			}
			waitFor(t, func() bool { return asked.Load() > 100 })
			if err := leaves.wait(); err != nil {
				t.Error(err)
			}
			at := asked.Load()
			waitFor(t, func() bool { return asked.Load() > at+100 || lost.Load() > 0 })
			close(stop)
			clients.Wait()
			t.Logf("%d requests, %d lost", asked.Load(), lost.Load())
		})
	}
}

// TestAbruptEndLosesRequests is the twin: the same clients notice when a server
// does not drain.
func TestAbruptEndLosesRequests(t *testing.T) {
	handler := make(chan struct{}, 1)
	f := start(t, map[string]Endpoint{"/mutate": {Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		handler <- struct{}{}
		<-r.Context().Done()
	})}}, nil)
	answered := make(chan error, 1)
	go func() { answered <- post(t.Context(), f.client(t, true, nil), f.url("/mutate"), "x") }()
	<-handler
	if err := f.server.endpoints.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err == nil {
		t.Error("the request was answered by a server that was closed")
	}
}

func TestDrainFinishesRequests(t *testing.T) {
	handler, release := make(chan struct{}), make(chan struct{})
	f := start(t, map[string]Endpoint{"/mutate": {Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(handler)
		<-release
		if err := r.Context().Err(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		writeText(w, http.StatusOK, "late")
	})}}, nil, WithDrainDelay(10*time.Millisecond))
	answered := make(chan error, 1)
	go func() { answered <- post(t.Context(), f.client(t, true, nil), f.url("/mutate"), "late") }()
	<-handler
	f.stop()
	waitFor(t, func() bool {
		_, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.server.Address().String())
		return err != nil
	})
	if status, body := f.plain(t, "/readyz"); status != 503 || !strings.HasPrefix(body, "not ready: drain") {
		t.Errorf("readyz while it drains: %d %q", status, body)
	}
	select {
	case err := <-f.returned:
		t.Fatalf("left with a request at work: %v", err)
	default:
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the request that was at work: %v", err)
	}
	if err := f.wait(); err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestRunReportsErrors(t *testing.T) {
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, nil)
	again, err := New(f.server.config)
	if err != nil {
		t.Fatal(err)
	}
	again.config.Address = f.server.Address().String()
	if err := again.Run(t.Context()); err == nil {
		t.Error("two servers on one address")
	}
	if err := f.server.Listen(t.Context()); err == nil {
		t.Error("listening twice")
	}
}

func TestFailedListenerEndsTheServer(t *testing.T) {
	f := start(t, map[string]Endpoint{"/mutate": {Handler: saying("here")}}, nil)
	if _, _, err := get(t, f.client(t, true, nil), f.url("/mutate")); err != nil {
		t.Fatal(err)
	}
	if err := f.server.listening.endpoints.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-f.returned; err == nil {
		t.Error("Run returned nil for a listener that failed")
	}
	close(f.returned)
}

func post(ctx context.Context, client *http.Client, url, text string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(text)))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || string(body) != text {
		return fmt.Errorf("HTTP %d: %s", response.StatusCode, body)
	}
	return nil
}

// waitFor polls until a condition holds.
func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(20 * time.Second)
	defer end.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatal("waited in vain")
		}
	}
}
