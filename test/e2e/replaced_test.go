package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestReplacedPolicy: a policy that is deleted and made again leaves no time in which the
// gateway has it and the webhooks do not match. A deletion for good removes the webhooks'
// rules.
func TestReplacedPolicy(t *testing.T) {
	s := guard(t, "replaced", gateway.Configuration{})
	kubectl := s.kubectl(t)
	bare := s.env.Unsigned("shop/bare", "1.0")
	text, err := s.env.YAML(env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}, FailurePolicy: "Fail"})
	must(t, err)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	drop := s.put(t, text)
	s.awaitRefused(t, bare.Name, "[unsigned]")
	for range 3 {
		before, err := s.swaps()
		must(t, err)
		_, err = kubectl("replace", "--force", "-f", file)
		must(t, err)
		eventually(t, func(context.Context) error {
			if now, err := s.swaps(); err != nil || now < before+2 {
				return fmt.Errorf("the gateway swapped its policies %d times, want that it went and came (%w)", now-before, err)
			}
			return nil
		})
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			_, err := s.dryRun(t.Context(), pod("bare", bare.Name))
			denied(t, "an unsigned image, after its policy was replaced", err, "unsigned")
			if t.Failed() {
				return
			}
		}
	}
	drop()
	s.gateway.Kill()
	if _, err := s.dryRun(t.Context(), pod("bare", bare.Name)); err == nil {
		t.Error("while the gateway is away, the webhook of a policy that was just deleted is gone")
	}
	s.endLead(t)
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	s.awaitAdmitted(t, bare.Name)
}

// swaps returns how often the gateway swapped its policies.
func (s *scene) swaps() (count int, err error) {
	lines, err := s.gateway.Lines()
	for _, line := range lines {
		if line["msg"] == "policies" {
			count++
		}
	}
	return count, err
}
