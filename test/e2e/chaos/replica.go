package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/footprint"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/machine"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// replica is a gateway that is started again after it ended.
type replica struct {
	options gateway.Options
	log     string        // folder of its decision log
	disk    *machine.Disk // on which that lies
	running atomic.Pointer[gateway.Gateway]
}

func (r *replica) now() *gateway.Gateway { return r.running.Load() }

// start runs it, with the folder of the one before.
func (r *replica) start(ctx context.Context) error {
	g, err := gateway.Start(ctx, r.options)
	if err == nil {
		r.running.Store(g)
	}
	return err
}

// newReplica writes what a gateway needs, and does not run it.
func (s *stand) newReplica(ctx context.Context, i int, identity *rest.Config) (*replica, error) {
	name := fmt.Sprint("quaymaster-", i)
	folder := filepath.Join(s.folder, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	c := gateway.Configuration{}
	for _, address := range []*string{&c.Listen.Address, &c.Listen.Plain, &c.Listen.Profiling} {
		var err error
		*address, err = process.FreeAddress(ctx)
		if err != nil {
			return nil, err
		}
	}
	c.Listen.DrainDelay = "1s" // the balancer looks twenty times a second
	c.Peers.Address = c.Listen.Address
	c.SharedMemory.Address = s.toRedis.Address()
	c.Snapshot.Interval = "1s"
	c.Ages.Tag = "2s" // tags are asked for all the time
	if s.settings.soak > 0 {
		c.Ages.Fact = soakFact
	}
	c.Trust.TrustedRoot = filepath.Join(folder, "trusted_root.json")
	if err := os.WriteFile(c.Trust.TrustedRoot, s.ports[0].Root(), 0o600); err != nil {
		return nil, err
	}
	for _, p := range s.ports {
		c.PlainHTTP(p.Line.Address())
	}
	// Nothing that was answered may be lost: an answer waits for the disk, and is none where
	// that fails.
	c.DecisionLog.Folder, c.DecisionLog.Fsync = filepath.Join(folder, "decisions"), "always"
	if err := os.Mkdir(c.DecisionLog.Folder, 0o700); err != nil {
		return nil, err
	}
	c.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := controlplane.WriteKubeconfig(c.Kubernetes.Kubeconfig, identity); err != nil {
		return nil, err
	}
	r := &replica{log: filepath.Join(c.DecisionLog.Folder, name)}
	r.options = gateway.Options{Program: s.program, Folder: folder, Configuration: c, Env: []string{"POD_NAME=" + name}}
	if s.clock != nil {
		r.options.Env = append(r.options.Env, s.clock.Environment())
	}
	return r, nil
}

// busier returns the replica that is asked more than the other: the API server keeps to a
// connection, and a Service gives it to one of them.
func (s *stand) busier(ctx context.Context) (*replica, error) {
	var asked [replicas]float64
	for _, sign := range []float64{-1, 1} {
		for i, r := range s.replicas {
			samples, err := r.now().Metrics(ctx)
			if err != nil {
				return nil, err
			}
			asked[i] += sign * gateway.Sum(samples, "quaymaster_admissions_total")
		}
		if sign < 0 {
			if err := wait(ctx, calm); err != nil {
				return nil, err
			}
		}
	}
	if asked[0] >= asked[1] {
		return s.replicas[0], nil
	}
	return s.replicas[1], nil
}

// readings are the gateways' resources now.
func (s *stand) readings(ctx context.Context) ([]footprint.Reading, error) {
	all := make([]footprint.Reading, replicas)
	for i, r := range s.replicas {
		var err error
		all[i], err = footprint.Read(ctx, r.now())
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// settled waits until gateways use about as much as before, while the load goes on.
func (s *stand) settled(ctx context.Context, before []footprint.Reading) (after []footprint.Reading, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err = process.Eventually(ctx, func(ctx context.Context) (err error) {
		after, err = s.readings(ctx)
		if err != nil {
			return err
		}
		for i, now := range after {
			if !now.IsBack(before[i]) {
				return fmt.Errorf("replica %d held %+v before and holds %+v", i, before[i], now)
			}
		}
		return nil
	})
	return after, err
}
