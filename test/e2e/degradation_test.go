package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// closedAddress is an address of loopback without a listener.
const closedAddress = "127.0.0.1:1"

// TestDegraded: a gateway that starts without all of its optional dependencies makes the same
// decisions, and reports which are away.
func TestDegraded(t *testing.T) {
	s := unguarded(t, "degraded")
	c := gateway.Configuration{}
	c.Trust.Refresh = true // the repository is behind a proxy that does not run
	c.SharedMemory.Address = closedAddress
	c.DecisionLog.Folder, c.DecisionLog.Webhook.URL = t.TempDir(), "http://"+closedAddress
	s.gateway = s.freshStart(t, c)
	must(t, s.gateway.Ready(t.Context()))
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")

	if got, err := s.dryRun(t.Context(), pod("signed", signed.Name)); err != nil || images(got)[0] != env.Pinned(signed) {
		t.Errorf("a signed image: %v", err)
	}
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "while all else is away", err, "unsigned")
	for _, row := range []struct {
		away, metric string
		labels       []string
	}{
		{"the TUF repository", "quaymaster_trust_refresh_failed", nil},
		{"the shared cache", "quaymaster_shared_cache_total", []string{"result", "failed"}},
		{"the decision log's sink", "quaymaster_decision_log_sink_behind", []string{"sink", "webhook"}},
		{"the decision log's sink", "quaymaster_decision_log_sink_failures_total", []string{"sink", "webhook"}},
	} {
		eventually(t, func(ctx context.Context) error {
			samples, err := s.gateway.Metrics(ctx)
			if err == nil && gateway.Sum(samples, row.metric, row.labels...) < 1 {
				err = fmt.Errorf("%s is away, and %s %v does not say so", row.away, row.metric, row.labels)
			}
			return err
		})
	}
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	if lost := gateway.Sum(samples, "quaymaster_decision_log_lost_total"); lost != 0 {
		t.Errorf("the decision log lost %v lines because a sink is away", lost)
	}

	t.Run("a registry that goes away", s.tryProvedBefore)
}

// tryProvedBefore: a verified image is admitted by its digest; another one is refused as one
// that could not be verified.
func (s *scene) tryProvedBefore(t *testing.T) {
	proved, err := s.env.Signed("shop/proved", "1.0")
	must(t, err)
	later, err := s.env.Signed("shop/later", "1.0")
	must(t, err)
	if _, err := s.dryRun(t.Context(), pod("proved", proved.ByDigest())); err != nil {
		t.Fatal(err)
	}
	s.env.Close()
	if _, err := s.dryRun(t.Context(), pod("proved", proved.ByDigest())); err != nil {
		t.Errorf("an image that was proved: %v", err)
	}
	_, err = s.dryRun(t.Context(), pod("later", later.ByDigest()))
	unverified(t, "an image that is not cached", err)
}

// TestNamesDoNotResolve: a name that DNS does not have, or that no server answers for, is a
// registry that is away.
func TestNamesDoNotResolve(t *testing.T) {
	s := unguarded(t, "unresolved")
	s.vacate(t)
	s.gateway = s.start(t, gateway.Configuration{}, "NO_PROXY=127.0.0.1,.invalid") // no proxy looks it up, either
	must(t, s.gateway.Ready(t.Context()))
	open, said := s.in(t, "unresolved-open").heard(t)
	for failure, guarded := range map[string]*scene{"Fail": s, "Ignore": open} {
		guarded.apply(t, env.Policy{Name: guarded.namespace, Namespaces: []string{guarded.namespace}, FailurePolicy: failure, Images: []string{"*"}})
	}
	const image = "registry.invalid/shop/web:1.0" // RFC 6761: it never resolves
	_, err := s.dryRun(t.Context(), pod("web", image))
	unverified(t, "Fail", err)
	said()
	if _, err := open.dryRun(t.Context(), pod("web", image)); err != nil {
		t.Errorf("Ignore: %v", err)
	}
	if warnings := said(); !strings.Contains(warnings, "registry-unavailable") && !strings.Contains(warnings, "could not be verified") {
		t.Errorf("Ignore: the warnings are %q", warnings)
	}
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	if _, err := s.dryRun(t.Context(), pod("signed", signed.Name)); err != nil {
		t.Errorf("an image of another registry: %v", err)
	}
}
