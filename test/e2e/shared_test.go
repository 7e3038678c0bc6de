package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// redis runs one on loopback, which keeps nothing on disk.
func redis(t *testing.T) (*process.Process, string) {
	t.Helper()
	server, address, err := process.StartRedis(t.Context(), t.TempDir())
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("%s is not installed: the memory that replicas share is NOT tested here (apt-get install %[1]s)", process.RedisServer)
	}
	must(t, err)
	t.Cleanup(server.Kill)
	return server, address
}

// TestSharedMemory: what one replica proved, another knows by the store that they
// share; without it the other looks for itself.
func TestSharedMemory(t *testing.T) {
	server, address := redis(t)
	s := unguarded(t, "shared")
	alone := func(c *gateway.Configuration) { c.Peers.Disabled = true }
	strangers := s.replicas(t, 2, alone)
	sharing := s.replicas(t, 2, func(c *gateway.Configuration) {
		alone(c)
		c.SharedMemory.Address, c.SharedMemory.Timeout = address, "500ms" // on a busy machine
	})
	s.gateway = sharing[0]
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	for _, g := range append(strangers, sharing...) {
		s.isEnforcing(t, g)
	}
	built := 0
	second := func(replicas []*gateway.Gateway, name func(gatetest.Image) string) (first, then int) {
		t.Helper()
		built++
		image, err := s.env.Signed("shop/cold", fmt.Sprint(built))
		must(t, err)
		var cost [2]int
		for i, g := range replicas {
			s.env.Registry.Reset()
			p := pod(fmt.Sprint("cold-", built), name(image))
			endpoint := s.caller(t, g)
			if p.Spec.Containers[0].Image == image.Name {
				must(t, s.admitBetween(t.Context(), p, endpoint, endpoint))
			} else {
				said, err := endpoint.ask(t.Context(), "/validate", s.reviewOf(p, "ann"))
				must(t, err)
				if !said.Allowed {
					t.Errorf("by digest: %s", said.Result.Message)
				}
			}
			cost[i] = s.env.Registry.Count("")
		}
		return cost[0], cost[1]
	}
	byTag := func(image gatetest.Image) string { return image.Name }

	alike, apart := second(strangers, byTag)
	if alike < 2 || apart != alike {
		t.Errorf("replicas that share nothing: %d requests by the first and %d by the second", alike, apart)
	}
	if first, then := second(sharing, byTag); first != alike || then > 1 {
		t.Errorf("by tag: %d requests by the first replica and %d by the second, want %d and at most 1", first, then, alike)
	}
	if first, then := second(sharing, gatetest.Image.ByDigest); first == 0 || then != 0 {
		t.Errorf("by digest: %d requests by the first replica and %d by the second, want none", first, then)
	}

	// Either replica denies an unsigned image.
	bare := s.env.Unsigned("shop/bare", "1.0")
	for i, g := range sharing {
		said, err := s.caller(t, g).ask(t.Context(), "/mutate", s.reviewOf(pod("bare", bare.Name), "ann"))
		if err != nil || said.Allowed {
			t.Errorf("an unsigned image at replica %d: %+v, %v", i, said, err)
		}
	}
	server.Kill()
	// A replica that has seen the repository knows that it has the referrers API, and does
	// not ask for the tag beside it; the second has taken all of it from the store so far.
	if first, then := second(sharing, byTag); first != alike-1 || then != alike {
		t.Errorf("without the store: %d requests by the first replica and %d by the second, want %d and %d", first, then, alike-1, alike)
	}
}

// isEnforcing waits until a gateway denies an unsigned image.
func (s *scene) isEnforcing(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	bare := s.env.Unsigned("probe/enforcing", "1.0")
	endpoint := s.caller(t, g)
	eventually(t, func(ctx context.Context) error {
		said, err := endpoint.ask(ctx, "/validate", s.reviewOf(pod("enforcing", bare.ByDigest()), "ann"))
		if err == nil && said.Allowed {
			err = errAdmitted
		}
		return err
	})
}
