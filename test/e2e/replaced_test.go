package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/harbour"
)

// TestReplacedPolicy: who deletes a policy and makes it again leaves no time in which the
// gateway has it and the API server asks nobody. What is deleted for good is let go.
func TestReplacedPolicy(t *testing.T) {
	s := guard(t, "replaced", gateway.Configuration{})
	kubectl := s.kubectl(t)
	bare := s.harbour.Unsigned("shop/bare", "1.0")
	text, err := s.harbour.YAML(harbour.Policy{Name: s.namespace, Namespaces: []string{s.namespace}, FailurePolicy: "Fail"})
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
		t.Error("nobody was asked about a policy that went only now, while the gateway is away")
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
