package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/balancer"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

var errTooFew = errors.New("too few requests so far")

// replicas runs gateways behind a balancer, and returns when all are ready.
func (s *scene) replicas(t *testing.T, count int, change func(*gateway.Configuration)) []*gateway.Gateway {
	t.Helper()
	s.vacate(t)
	configurations := make([]gateway.Configuration, count)
	var backends []balancer.Backend
	for i := range configurations {
		c := &configurations[i]
		var err error
		c.Listen.Address, err = process.FreeAddress(t.Context())
		must(t, err)
		c.Listen.Plain, err = process.FreeAddress(t.Context())
		must(t, err)
		c.Listen.DrainDelay = "1s" // much longer than the balancer takes to notice
		c.Peers.Address = c.Listen.Address
		if change != nil {
			change(c)
		}
		backends = append(backends, balancer.Backend{Address: c.Listen.Address, Ready: "http://" + c.Listen.Plain + "/readyz"})
	}
	front, err := balancer.Listen(t.Context(), backends...)
	must(t, err)
	t.Cleanup(front.Close)
	started := make([]*gateway.Gateway, count)
	for i, c := range configurations {
		c.Webhooks.URL = "https://" + front.Address()
		started[i] = s.start(t, c)
	}
	for _, g := range started {
		must(t, g.Ready(t.Context()))
	}
	return started
}

// crowd are users that create pods all the time, as dry runs.
type crowd struct {
	asked, failed, wrong atomic.Int64
	users                sync.WaitGroup
	stop                 context.CancelFunc
}

// users of a crowd; each has one request at work.
const users = 8

// gather starts a crowd; half of its pods are to be admitted, half never.
func (s *scene) gather(t *testing.T, signed, unsigned string) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &crowd{stop: stop}
	t.Cleanup(c.leave)
	for range users {
		c.users.Go(func() {
			for ctx.Err() == nil {
				if got, err := s.dryRun(t.Context(), pod("signed", signed)); err != nil {
					c.failed.Add(1)
					t.Logf("a signed image: %v", err)
				} else if !strings.Contains(images(got)[0], "@sha256:") {
					c.wrong.Add(1)
				}
				if _, err := s.dryRun(t.Context(), pod("bare", unsigned)); err == nil {
					c.wrong.Add(1)
				}
				c.asked.Add(1)
			}
		})
	}
	return c
}

// more lets a crowd ask some more.
func (c *crowd) more(t *testing.T) {
	t.Helper()
	target := c.asked.Load() + 50
	eventually(t, func(context.Context) error {
		if c.asked.Load() < target {
			return errTooFew
		}
		return nil
	})
}

func (c *crowd) leave() {
	c.stop()
	c.users.Wait()
}

// check fails if more than some requests failed, or an unsigned or unpinned pod was ever
// admitted.
func (c *crowd) check(t *testing.T, mayFail int64) {
	t.Helper()
	if failed, wrong := c.failed.Load(), c.wrong.Load(); failed > mayFail || wrong != 0 {
		t.Errorf("of %d requests each, %d signed images were refused (at most %d may be) and %d wrong ones admitted", c.asked.Load(), failed, mayFail, wrong)
	}
}

// TestReplicas: with two replicas, one that is asked to end takes no request
// with it, and nothing wrong is ever admitted.
func TestReplicas(t *testing.T) {
	s := unguarded(t, "replicas")
	replicas := s.replicas(t, 2, nil)
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	unsigned := s.env.Unsigned("shop/bare", "1.0")

	load := s.gather(t, signed.Name, unsigned.Name)
	load.more(t)
	must(t, replicas[0].Terminate())
	select {
	case <-replicas[0].Done():
	case <-t.Context().Done():
	}
	load.more(t)
	load.leave()
	if replicas[0].Ended() != nil {
		t.Errorf("asked to end, it ended with %v", replicas[0].Ended())
	}
	load.check(t, 0)
}

// inFlight is how many requests to endpoints a replica is at work on.
func inFlight(t *testing.T, g *gateway.Gateway) float64 {
	t.Helper()
	samples, err := g.Metrics(t.Context())
	must(t, err)
	return gateway.Sum(samples, "quaymaster_requests_in_flight")
}

// TestReplicaKilled: a replica that is killed refuses the requests that it had in progress,
// and no others.
func TestReplicaKilled(t *testing.T) {
	s := unguarded(t, "killed")
	replicas := s.replicas(t, 2, nil)
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	unsigned := s.env.Unsigned("shop/bare", "1.0")
	load := s.gather(t, signed.Name, unsigned.Name)
	load.more(t)

	// Some requests are held in the gateway by a registry that does not answer.
	const held = 6
	later, release := waiting()
	defer release()
	s.env.Registry.SetFaults(registrytest.Fault{Repository: "shop/held", Do: later})
	refused := make(chan error, held)
	for i := range held {
		image := s.env.Unsigned("shop/held", fmt.Sprint(i))
		go func() {
			_, err := s.dryRun(t.Context(), pod("held", image.Name))
			refused <- err
		}()
	}
	eventually(t, func(context.Context) error {
		asked := 0
		for _, request := range s.env.Registry.Requests() {
			if request.Repository == "shop/held" {
				asked++
			}
		}
		if asked < held {
			return errTooFew
		}
		return nil
	})
	victim := slices.MaxFunc(replicas, func(a, b *gateway.Gateway) int { return int(inFlight(t, a) - inFlight(t, b)) })
	victim.Kill()
	load.more(t)
	release()
	broken := 0
	for range held {
		err := <-refused
		switch {
		case err == nil:
			t.Error("an unsigned image was admitted when its replica was killed")
		case strings.Contains(err.Error(), "failed calling webhook"):
			broken++
		}
	}
	if broken == 0 {
		t.Error("no request was in flight on the replica that was killed: the test shows nothing")
	}
	load.more(t)
	load.leave()
	load.check(t, users) // each had at most one in flight
}

// TestPeers: what one replica proved costs the registry nothing when another is
// asked about it.
func TestPeers(t *testing.T) {
	s := unguarded(t, "peers")
	strangers := s.replicas(t, 2, func(c *gateway.Configuration) { c.Peers.Disabled = true })
	replicas := s.replicas(t, 3, nil)
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})

	built := 0
	cost := func(ctx context.Context, mutate, validate *gateway.Gateway) (int, error) {
		built++
		image, err := s.env.Signed("shop/cold", fmt.Sprint(built))
		if err != nil {
			return 0, err
		}
		s.env.Registry.Reset()
		err = s.admitBetween(ctx, pod(fmt.Sprint("cold-", built), image.Name), s.caller(t, mutate), s.caller(t, validate))
		return s.env.Registry.Count(""), err
	}
	s.introduce(t, slices.Concat(strangers, replicas)...)
	alone, err := cost(t.Context(), replicas[0], replicas[0])
	must(t, err)
	if alone == 0 {
		t.Fatal("a cold pod cost nothing")
	}
	for i, first := range replicas {
		for j, second := range replicas {
			if i == j {
				continue
			}
			eventually(t, func(ctx context.Context) error { // until they know one another
				n, err := cost(ctx, first, second)
				if err == nil && n != alone {
					err = fmt.Errorf("%d requests from %d to %d, want %d", n, i, j, alone)
				}
				return err
			})
			if n, err := cost(t.Context(), first, second); err != nil || n != alone {
				t.Errorf("mutated by %d, validated by %d: %d requests to the registry, %v; one replica costs %d", i, j, n, err, alone)
			}
		}
	}
	if n, err := cost(t.Context(), strangers[0], strangers[1]); err != nil || n <= alone {
		t.Errorf("replicas that do not ask one another: %d requests, %v; want more than %d", n, err, alone)
	}
}

// TestPeersBehindBalancer: whichever replicas the API server's two calls reach, a cold pod
// costs as much as with one replica.
func TestPeersBehindBalancer(t *testing.T) {
	s := unguarded(t, "peers-balanced")
	single := s.freshStart(t, gateway.Configuration{})
	must(t, single.Ready(t.Context()))
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	cost := func(ctx context.Context, tag string) (int, error) {
		image, err := s.env.Signed("shop/cold", tag)
		if err != nil {
			return 0, err
		}
		s.env.Registry.Reset()
		got, err := s.dryRun(ctx, pod("cold", image.Name))
		if err == nil && images(got)[0] != env.Pinned(image) {
			err = fmt.Errorf("%v is not pinned", images(got))
		}
		return s.env.Registry.Count(""), err
	}
	s.introduce(t, single)
	alone, err := cost(t.Context(), "alone")
	must(t, err)
	single.Kill()

	replicas := s.replicas(t, 3, nil)
	s.awaitConfigurations(t, replicas[0])
	probe := 0
	eventually(t, func(ctx context.Context) error { // until the API server calls the balancer
		probe++
		_, err := cost(ctx, fmt.Sprint("probe-", probe))
		return err
	})
	s.introduce(t, replicas...)
	for i := range 12 {
		if n, err := cost(t.Context(), fmt.Sprint(i)); err != nil || n != alone {
			t.Errorf("pod %d: %d requests to the registry, %v; one replica costs %d", i, n, err, alone)
		}
	}
}

// introduce has each replica verify an image: the first of a repository costs one request more,
// which finds out whether the registry has the referrers API.
func (s *scene) introduce(t *testing.T, replicas ...*gateway.Gateway) {
	t.Helper()
	for i, replica := range replicas {
		image, err := s.env.Signed("shop/cold", fmt.Sprint("first-", len(replicas), "-", i))
		must(t, err)
		at := s.caller(t, replica)
		must(t, s.admitBetween(t.Context(), pod("first", image.Name), at, at))
	}
}

// admitBetween admits a pod by two callers of endpoints, as an API server does.
func (s *scene) admitBetween(ctx context.Context, p *core.Pod, mutate, validate caller) error {
	said, err := mutate.ask(ctx, "/mutate", s.reviewOf(p, "ann"))
	if err != nil {
		return err
	}
	if !said.Allowed {
		return fmt.Errorf("mutate: %s", said.Result.Message)
	}
	after, err := pinned(p, said.Patch)
	if err != nil {
		return err
	}
	said, err = validate.ask(ctx, "/validate", s.reviewOf(after, "ann"))
	if err == nil && !said.Allowed {
		err = fmt.Errorf("validate: %s", said.Result.Message)
	}
	return err
}
