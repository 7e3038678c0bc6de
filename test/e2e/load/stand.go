package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/balancer"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/nodes"
	"github.com/quaymaster/quaymaster/test/e2e/pair"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// replicas of the gateway.
const replicas = 3

// The namespaces: the gateway looks at the first three, and the pair at the last.
const (
	drainNamespace  = "load-drain"
	rampNamespace   = "load-ramp"
	steadyNamespace = "load-steady"
	pairNamespace   = "load-pair"
)

// openTimeout bounds how long something may take until it is asked.
const openTimeout = time.Minute

// stand is all that runs.
type stand struct {
	settings settings
	folder   string
	plane    *controlplane.ControlPlane
	env      *env.Env
	yard     *yard
	client   *kubernetes.Clientset
	http     *http.Client // for measured requests
	gateways []*gateway.Gateway
	bare     string // an unsigned image
	probe    string // a signed image of no other use
	version  string
	closers  []func()
}

func (s *stand) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// build starts everything but the gateway. With an error, too, it returns the started parts.
func build(ctx context.Context, folder string, settings settings) (s *stand, err error) {
	s = &stand{settings: settings, folder: folder}
	s.plane, err = controlplane.Start(ctx, controlplane.Options{Folder: folder, Controllers: true})
	if err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.plane.Close)
	s.env, err = env.Open(registrytest.Options{Delay: settings.delay})
	if err != nil {
		return s, err
	}
	s.closers = append(s.closers, s.env.Close)
	s.yard, err = openYard(s.env)
	if err != nil {
		return s, err
	}
	s.bare = s.env.Unsigned("bare/web", "1.0").Name
	probe, err := s.env.Signed("key/probe", "1.0")
	if err != nil {
		return s, err
	}
	s.probe = probe.Name
	s.http, err = rest.HTTPClientFor(s.plane.Admin())
	if err != nil {
		return s, err
	}
	s.client, err = kubernetes.NewForConfig(s.plane.Admin())
	if err != nil {
		return s, err
	}
	version, err := s.client.Discovery().ServerVersion()
	if err != nil {
		return s, err
	}
	s.version = version.GitVersion
	for _, namespace := range []string{drainNamespace, rampNamespace, steadyNamespace, pairNamespace} {
		if err := s.plane.Namespace(ctx, namespace); err != nil {
			return s, err
		}
	}
	simulated, err := nodes.Start(ctx, s.plane.Admin(), settings.nodes)
	if err != nil {
		return s, err
	}
	s.closers = append(s.closers, simulated.Close)
	return s, nil
}

// openPair starts the webhooks that allow everything.
func (s *stand) openPair(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	running, err := pair.Start(ctx, pair.Options{Plane: s.plane, Folder: s.folder, Namespace: pairNamespace})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, running.Kill)
	return running.Asked(ctx, func(ctx context.Context) error {
		_, err := s.create(ctx, pairNamespace, encode(s.probe, ""))
		return err
	})
}

// openGateway starts the replicas and returns when they refuse unsigned images.
func (s *stand) openGateway(ctx context.Context) error {
	identity, err := s.plane.Install(ctx)
	if err != nil {
		return err
	}
	checkout, err := peers.Checkout()
	if err != nil {
		return err
	}
	definitions, err := os.ReadFile(filepath.Join(checkout, "test", "e2e", "testdata", "reports.yaml"))
	if err != nil {
		return err
	}
	policies, err := s.policies(drainNamespace, rampNamespace, steadyNamespace)
	if err != nil {
		return err
	}
	for _, text := range []string{string(definitions), policies} {
		if err := s.plane.ApplyYAML(ctx, text); err != nil {
			return err
		}
	}
	program := s.settings.program
	if program == "" {
		program = filepath.Join(s.folder, "quaymaster")
		if err := peers.BuildQuaymaster(ctx, program); err != nil {
			return err
		}
	}
	if err := s.startReplicas(ctx, program, identity); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return process.Eventually(ctx, func(ctx context.Context) error {
		if _, err := s.create(ctx, steadyNamespace, encode(s.bare, "")); !errors.As(err, new(*refusal)) {
			return fmt.Errorf("an unsigned image is not refused yet: %w", err)
		}
		_, err := s.create(ctx, steadyNamespace, encode(s.probe, ""))
		return err
	})
}

func (s *stand) startReplicas(ctx context.Context, program string, identity *rest.Config) error {
	root := filepath.Join(s.folder, "trusted_root.json")
	if err := os.WriteFile(root, s.env.Sigstore.TrustedRoot(), 0o600); err != nil {
		return err
	}
	configurations := make([]gateway.Configuration, replicas)
	var backends []balancer.Backend
	for i := range configurations {
		c := &configurations[i]
		for _, address := range []*string{&c.Listen.Address, &c.Listen.Plain} {
			var err error
			*address, err = process.FreeAddress(ctx)
			if err != nil {
				return err
			}
		}
		c.Peers.Address = c.Listen.Address
		c.Trust.TrustedRoot = root
		c.Scan.Disabled = true // it would have verified the images to drain
		c.PlainHTTP(s.env.Registry.Host())
		excluded := []string{"kube-system", pairNamespace}
		c.Webhooks.ExcludedNamespaces = &excluded
		backends = append(backends, balancer.Backend{Address: c.Listen.Address, Ready: "http://" + c.Listen.Plain + "/readyz"})
	}
	front, err := balancer.Listen(ctx, backends...)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, front.Close)
	for i, c := range configurations {
		folder := filepath.Join(s.folder, fmt.Sprint("gateway-", i))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		c.DecisionLog.Folder = filepath.Join(folder, "decisions")
		c.Webhooks.URL = "https://" + front.Address()
		c.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
		if err := controlplane.WriteKubeconfig(c.Kubernetes.Kubeconfig, identity); err != nil {
			return err
		}
		running, err := gateway.Start(ctx, gateway.Options{Program: program, Folder: folder, Configuration: c})
		if err != nil {
			return err
		}
		s.closers = append(s.closers, running.Kill)
		s.gateways = append(s.gateways, running)
	}
	for _, g := range s.gateways {
		if err := g.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// count adds up a metric of all replicas.
func (s *stand) count(ctx context.Context, name string, labels ...string) (sum int, err error) {
	for _, g := range s.gateways {
		samples, err := g.Metrics(ctx)
		if err != nil {
			return 0, err
		}
		sum += int(gateway.Sum(samples, name, labels...))
	}
	return sum, nil
}

// usage is what programs used: the replicas together, and the API server.
type usage struct {
	gateway, server time.Duration
	peaks           []func() int64
}

// used begins to measure; the function that it returns ends that, with the most memory of any
// replica, in bytes.
func (s *stand) used(ctx context.Context) (func() (gateway, server time.Duration, peak int64, err error), error) {
	before, err := s.spent()
	if err != nil {
		return nil, err
	}
	for _, g := range s.gateways {
		before.peaks = append(before.peaks, g.Peak(ctx))
	}
	return func() (time.Duration, time.Duration, int64, error) {
		var peak int64
		for _, p := range before.peaks {
			peak = max(peak, p())
		}
		after, err := s.spent()
		return after.gateway - before.gateway, after.server - before.server, peak, err
	}, nil
}

func (s *stand) spent() (u usage, err error) {
	for _, g := range s.gateways {
		spent, err := g.CPU()
		if err != nil {
			return u, err
		}
		u.gateway += spent
	}
	u.server, err = s.plane.APIServer().CPU()
	return u, err
}

// template is a pod of usual size.
func template(image, scheduler string) core.PodSpec {
	return core.PodSpec{
		SchedulerName: scheduler,
		Containers: []core.Container{{
			Name: "web", Image: image, Args: []string{"--listen=:8080"},
			Ports: []core.ContainerPort{{ContainerPort: 8080}},
			Env:   []core.EnvVar{{Name: "STAGE", Value: "production"}},
		}},
	}
}
