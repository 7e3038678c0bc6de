package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestBrokenIgnored: a broken policy that was created while the webhook was away, with
// failurePolicy Ignore, denies nothing, and each answer has a warning. Another policy is
// enforced as before.
func TestBrokenIgnored(t *testing.T) {
	s := unguarded(t, "broken-ignored")
	s.endLead(t)
	// No gateway runs that could refuse it.
	must(t, s.plane.ApplyYAML(t.Context(), strings.Replace(misspelt, "spec:\n", "spec:\n  failurePolicy: Ignore\n", 1)))
	t.Cleanup(func() { s.remove(t, "misspelt") })
	c := gateway.Configuration{}
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	s.checkStates(t, 0, 0, 1)
	bare := s.env.Unsigned("shop/bare", "1.0")

	heard, said := s.heard(t)
	eventually(t, func(ctx context.Context) error { // until the API server asks at all
		if _, err := heard.dryRun(ctx, pod("web", bare.Name)); err != nil {
			t.Errorf("under a broken policy that ignores failures: %v", err)
		}
		if warnings := said(); !strings.Contains(warnings, "could not be verified") || !strings.Contains(warnings, "misspelt") {
			return fmt.Errorf("the warning of an admitted pod is %q", warnings)
		}
		return nil
	})
	guards, err := s.guards(t.Context())
	must(t, err)
	if len(guards) != 1 || *guards[0].FailurePolicy != admission.Ignore {
		t.Errorf("the webhooks are %v, want one webhook that is ignored while the gateway is away", called(guards))
	}
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	if gateway.Sum(samples, "quaymaster_policy_broken", "policy", "ClusterPolicy/misspelt") != 1 {
		t.Error("the metrics do not name the broken policy")
	}
	const field = "spec.rules[0].verifyImages[0].imageReferencez"
	eventually(t, func(ctx context.Context) error {
		events, err := s.eventsIn(ctx, meta.NamespaceDefault)
		for _, e := range events {
			if e.Regarding.Name == "misspelt" && e.Reason == "PolicyError" && strings.Contains(e.Note, field) {
				return nil
			}
		}
		return fmt.Errorf("no event names the field among %v (%w)", events, err)
	})
	s.awaitStatus(t, "misspelt", "False", field)

	strict := s.in(t, "broken-beside")
	strict.enforce(t, env.Policy{Name: "broken-beside", Namespaces: []string{strict.namespace}, FailurePolicy: "Fail"})
	_, err = strict.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "an unsigned image under a good policy beside it", err, "unsigned")
	if _, err := s.dryRun(t.Context(), pod("bare", bare.Name)); err != nil {
		t.Errorf("where only the broken policy matches: %v", err)
	}

	text, err := s.env.YAML(env.Policy{Name: "misspelt", Namespaces: []string{s.namespace}, FailurePolicy: "Ignore"})
	must(t, err)
	s.effect(t, func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, text) })
	s.awaitGuard(t, s, bare.Name, true)
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "after the correction an unsigned image", err, "unsigned")
	s.awaitStatus(t, "misspelt", "True", "active")
}
