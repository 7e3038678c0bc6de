package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
)

// nativePolicies are the 18 controls as ValidatingPolicies: evaluated by the gateway in one namespace, and by the API
// server in another one, next to the same controls as they are written for the API server by hand.
const nativePolicies = "Native"

// The phases of nativePolicies, next to those of every kind.
const (
	native  = "native"
	written = "by hand"
)

// leastNative is how much of the rate of hand-written policies native ones are to reach.
const leastNative = 0.97

// openWritten installs the hand-written policies.
func (s *stand) openWritten(ctx context.Context, p *phase) error {
	if err := install(ctx, s.plane, admissionPolicies(p.namespace)); err != nil {
		return err
	}
	return s.awaitNative(ctx, p)
}

// openNative starts the writer of native policies beside the gateway, and returns when the API server evaluates them all
// and calls no webhook in the namespace.
func (s *stand) openNative(ctx context.Context, p *phase) error {
	checkout, err := peers.Checkout()
	if err != nil {
		return err
	}
	rights, err := os.ReadFile(filepath.Join(checkout, "test", "e2e", "testdata", "native.yaml"))
	if err != nil {
		return err
	}
	if err := s.plane.ApplyYAML(ctx, string(rights)); err != nil {
		return err
	}
	if err := install(ctx, s.plane, validatingPolicies(p.namespace)); err != nil {
		return err
	}
	identity, err := s.plane.ServiceAccount(ctx, "quaymaster", "quaymaster-native")
	if err != nil {
		return err
	}
	folder := filepath.Join(s.folder, "native")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	c := s.gateway.Configuration
	c.Roles, c.Policies.NativePolicies, c.Listen, c.Webhooks.URL = []string{"native"}, "requested", gateway.Listen{}, ""
	c.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := controlplane.WriteKubeconfig(c.Kubernetes.Kubeconfig, identity); err != nil {
		return err
	}
	running, err := gateway.Start(ctx, gateway.Options{Program: filepath.Join(s.folder, "quaymaster"), Folder: folder, Configuration: c})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, running.Kill)
	if err := s.awaitNative(ctx, p); err != nil {
		return err
	}
	return running.Await(ctx, func(ctx context.Context) error {
		samples, err := running.Metrics(ctx)
		if err != nil {
			return err
		}
		if got := gateway.Sum(samples, "quaymaster_native_policies", "side", "native"); got != float64(len(controls())) {
			return fmt.Errorf("%v policies are native", got)
		}
		before, err := s.asked(ctx)
		if err != nil {
			return err
		}
		if err := s.create(ctx, *p); err != nil {
			return err
		}
		if after, err := s.asked(ctx); err != nil || after != before {
			return errors.Join(err, errors.New("the gateway is called in the namespace"))
		}
		return nil
	})
}

// awaitNative returns when the API server itself refuses a pod that violates the standards.
func (s *stand) awaitNative(ctx context.Context, p *phase) error {
	for {
		err := s.post(ctx, *p, s.bad)
		if err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("a violating pod: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// asked is the number of requests that the gateway has answered; zero without a gateway.
func (s *stand) asked(ctx context.Context) (int, error) {
	if s.gateway == nil {
		return 0, nil
	}
	samples, err := s.gateway.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return int(gateway.Sum(samples, "quaymaster_requests_total")), nil
}

// judgeNative prints how native policies compare, and returns how many targets are missed.
func judgeNative(w io.Writer, rounds []round) (missed int) {
	against := func(other string) float64 {
		return median(rounds, func(r round) float64 { return r[native].rate / r[other].rate })
	}
	calls := 0
	for _, r := range rounds {
		calls += r[native].calls
	}
	for _, row := range []struct {
		met  bool
		text string
	}{
		{against(written) >= leastNative, fmt.Sprintf("rate %.2f of that of the policies by hand, want at least %.2f", against(written), leastNative)},
		{against(gated) > 1, fmt.Sprintf("rate %.2f of that of the webhook, want more than 1", against(gated))},
		{calls == 0, fmt.Sprintf("%d requests to the gateway, want none", calls)},
		{true, fmt.Sprintf("rate %.2f of that without any policy or webhook", against(bare))},
	} {
		verdict := "met"
		if !row.met {
			verdict = "MISSED"
			missed++
		}
		fmt.Fprintf(w, "  %-6s  %s\n", verdict, row.text)
	}
	return missed
}
