package e2e

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/balancer"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/harbour"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

var errTooFew = errors.New("too few requests so far")

// replicas runs two gateways behind a balancer, and returns when both are ready.
func (s *scene) replicas(t *testing.T) [2]*gateway.Gateway {
	t.Helper()
	var configurations [2]gateway.Configuration
	var backends []balancer.Backend
	for i := range configurations {
		c := &configurations[i]
		var err error
		c.Listen.Address, err = process.FreeAddress(t.Context())
		must(t, err)
		c.Listen.Plain, err = process.FreeAddress(t.Context())
		must(t, err)
		c.Listen.DrainDelay = "1s" // much longer than the balancer takes to notice
		backends = append(backends, balancer.Backend{Address: c.Listen.Address, Ready: "http://" + c.Listen.Plain + "/readyz"})
	}
	front, err := balancer.Listen(t.Context(), backends...)
	must(t, err)
	t.Cleanup(front.Close)
	var started [2]*gateway.Gateway
	for i, c := range configurations {
		c.Webhooks.URL = "https://" + front.Address()
		started[i] = s.start(t, c)
	}
	must(t, started[0].Ready(t.Context()), started[1].Ready(t.Context()))
	return started
}

// TestReplicas: with two replicas, one that is asked to end takes no request
// with it, and nothing wrong is ever admitted.
func TestReplicas(t *testing.T) {
	s := unguarded(t, "replicas")
	replicas := s.replicas(t)
	s.apply(t, harbour.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.harbour.Signed("shop/web", "1.0")
	must(t, err)
	unsigned := s.harbour.Unsigned("shop/bare", "1.0")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asked, failed, wrong atomic.Int64
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.dryRun(t.Context(), pod("signed", signed.Name)); err != nil {
					failed.Add(1)
					t.Logf("a signed image: %v", err)
				}
				if _, err := s.dryRun(t.Context(), pod("bare", unsigned.Name)); err == nil {
					wrong.Add(1)
				}
				asked.Add(1)
			}
		})
	}
	more := func() { // lets the users ask some more
		target := asked.Load() + 50
		eventually(t, func(context.Context) error {
			if n := asked.Load(); n < target {
				return errTooFew
			}
			return nil
		})
	}
	more()
	must(t, replicas[0].Terminate())
	select {
	case <-replicas[0].Done():
	case <-t.Context().Done():
	}
	more()
	stop()
	users.Wait()
	if replicas[0].Ended() != nil {
		t.Errorf("asked to end, it ended with %v", replicas[0].Ended())
	}
	if failed.Load() != 0 || wrong.Load() != 0 {
		t.Errorf("of %d requests each, %d signed images were refused and %d unsigned admitted", asked.Load(), failed.Load(), wrong.Load())
	}
}
