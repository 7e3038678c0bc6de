package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestTenantsAtAnEndpoint: a namespace with unresponsive registries takes three quarters of the
// seats, and another one's pods are answered meanwhile.
func TestTenantsAtAnEndpoint(t *testing.T) {
	d := newEnv(t)
	r := d.start(t, "limits: {requests: 16}\n")
	var tarpits []*registrytest.Server
	for range 5 {
		tarpit := registrytest.Start(registrytest.Options{Faults: []registrytest.Fault{{Do: registrytest.Hang()}}})
		t.Cleanup(tarpit.Close)
		tarpits = append(tarpits, tarpit)
	}
	var answered, shares atomic.Int64
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			got, err := r.ask("/mutate", "Pod", "greedy", fmt.Sprintf("%s/app-%d:v1", tarpits[i%len(tarpits)].Host(), i))
			answered.Add(1)
			said := got.Status.Message
			if err != nil || got.Allowed || !strings.Contains(said, "could not be verified") || strings.Contains(said, "unsigned") {
				t.Errorf("of a registry that never answers: %v, %+v", err, got)
			}
			if strings.Contains(said, "the namespace has reached its share") {
				shares.Add(1)
			}
		})
	}
	testkit.Eventually(t, func() error {
		_, page := get(t, "http://"+r.plain+"/metrics")
		if !strings.Contains(page, "quaymaster_queue_working 12\n") || !strings.Contains(page, "quaymaster_queue_waiting_for_share 48\n") {
			return errors.New("12 of 60 are not at work yet, or more are")
		}
		return nil
	})
	for range 10 {
		if got := r.mustAsk(t, "/mutate", "Pod", "calm", d.signed.Name); !got.Allowed {
			t.Errorf("another namespace: %s", got.Status.Message)
		}
	}
	if n := answered.Load(); n != 0 {
		t.Errorf("%d of the slow ones were answered meanwhile, so that nothing is shown", n)
	}
	all.Wait()
	if shares.Load() == 0 {
		t.Error("no response reports that the namespace has its share")
	}
}

// TestA429AtAnEndpoint: the registry is asked once, and each response has the time of the next try.
func TestA429AtAnEndpoint(t *testing.T) {
	d := newEnv(t)
	r := d.start(t, "")
	d.Registry.SetFaults(registrytest.Fault{Do: registrytest.RetryAfter(http.StatusTooManyRequests, "600")})
	d.Registry.Reset()
	for i := range 5 {
		got := r.mustAsk(t, "/mutate", "Pod", "shop", fmt.Sprintf("%s/new-%d:v1", d.Registry.Host(), i))
		if got.Allowed || !strings.Contains(got.Status.Message, "could not be verified") || !strings.Contains(got.Status.Message, "again") {
			t.Errorf("allowed %t: %s", got.Allowed, got.Status.Message)
		}
	}
	if n := d.Registry.Count(""); n != 1 {
		t.Errorf("the registry was asked %d times, want once", n)
	}
	if _, page := get(t, "http://"+r.plain+"/metrics"); !strings.Contains(page, "quaymaster_registries_limited 1\n") || !strings.Contains(page, "quaymaster_registries_kept 1\n") {
		t.Error("the metrics do not show it")
	}
}
