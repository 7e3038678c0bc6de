package balancer_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/balancer"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// replica is a server that answers with its name, and reports whether it is ready.
func replica(t *testing.T, name string) (server *httptest.Server, backend balancer.Backend, unready *atomic.Bool) {
	t.Helper()
	unready = &atomic.Bool{}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && unready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(server.Close)
	return server, balancer.Backend{Address: server.Listener.Addr().String(), Ready: server.URL + "/readyz"}, unready
}

// ask makes a connection of its own for each call.
func ask(t *testing.T, address string) (string, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestConnectionsGoToReadyBackendsInTurn(t *testing.T) {
	_, first, unready := replica(t, "first")
	second, other, _ := replica(t, "second")
	b, err := balancer.Listen(t.Context(), first, other)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()

	seen := map[string]int{}
	for range 6 {
		name, err := ask(t, b.Address())
		if err != nil {
			t.Fatal(err)
		}
		seen[name]++
	}
	if seen["first"] != 3 || seen["second"] != 3 || b.Connections(first.Address) != 3 {
		t.Errorf("six connections went to %v, want three to each", seen)
	}

	unready.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	inRow := 0
	if err := process.Eventually(ctx, func(context.Context) error {
		if name, err := ask(t, b.Address()); err != nil || name != "second" {
			inRow = 0
			return fmt.Errorf("%q answered (%w)", name, err)
		}
		inRow++
		if inRow < 4 {
			return io.ErrNoProgress
		}
		return nil
	}); err != nil {
		t.Errorf("a backend that is not ready still gets connections: %v", err)
	}

	second.Close()
	if name, err := ask(t, b.Address()); err == nil {
		t.Errorf("without a backend, %q answered", name)
	}
}

func TestDeadBackendIsPassedOver(t *testing.T) {
	_, alive, _ := replica(t, "alive")
	dead, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.Close()
	b, err := balancer.Listen(t.Context(), balancer.Backend{Address: dead.Addr().String()}, alive)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 4 {
		if name, err := ask(t, b.Address()); err != nil || name != "alive" {
			t.Errorf("got %q, %v", name, err)
		}
	}
	if got := b.Connections(dead.Addr().String()); got != 0 {
		t.Errorf("the dead backend was given %d connections", got)
	}
}
