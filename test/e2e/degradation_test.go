package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/harbour"
)

// nobodyThere is an address of loopback at which nobody listens.
const nobodyThere = "127.0.0.1:1"

// TestDegraded: a gateway that starts while all is away that it can do without decides as
// it would with it, and says what is away.
func TestDegraded(t *testing.T) {
	s := unguarded(t, "degraded")
	c := gateway.Configuration{}
	c.Trust.Refresh = true // the repository is behind a proxy that nobody runs
	c.SharedMemory.Address = nobodyThere
	c.DecisionLog.Folder, c.DecisionLog.Webhook.URL = t.TempDir(), "http://"+nobodyThere
	s.gateway = s.freshStart(t, c)
	must(t, s.gateway.Ready(t.Context()))
	s.apply(t, harbour.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.harbour.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.harbour.Unsigned("shop/bare", "1.0")

	if got, err := s.dryRun(t.Context(), pod("signed", signed.Name)); err != nil || images(got)[0] != harbour.Pinned(signed) {
		t.Errorf("a signed image: %v", err)
	}
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "while all else is away", err, "unsigned")
	for _, row := range []struct {
		away, metric string
		labels       []string
	}{
		{"the TUF repository", "quaymaster_trust_refresh_failed", nil},
		{"the shared memory", "quaymaster_shared_cache_total", []string{"result", "failed"}},
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

// tryProvedBefore: what was proved is known by its digest; what was not is refused as
// something that could not be verified.
func (s *scene) tryProvedBefore(t *testing.T) {
	proved, err := s.harbour.Signed("shop/proved", "1.0")
	must(t, err)
	later, err := s.harbour.Signed("shop/later", "1.0")
	must(t, err)
	if _, err := s.dryRun(t.Context(), pod("proved", proved.ByDigest())); err != nil {
		t.Fatal(err)
	}
	s.harbour.Close()
	if _, err := s.dryRun(t.Context(), pod("proved", proved.ByDigest())); err != nil {
		t.Errorf("an image that was proved: %v", err)
	}
	_, err = s.dryRun(t.Context(), pod("later", later.ByDigest()))
	unable(t, "an image that nobody has looked at", err)
}

// TestNamesDoNotResolve: a name that DNS does not know, or that nobody answers about, is
// a registry that is away.
func TestNamesDoNotResolve(t *testing.T) {
	s := unguarded(t, "unresolved")
	s.vacate(t)
	s.gateway = s.start(t, gateway.Configuration{}, "NO_PROXY=127.0.0.1,.invalid") // no proxy looks it up, either
	must(t, s.gateway.Ready(t.Context()))
	open, said := s.in(t, "unresolved-open").heard(t)
	for failure, guarded := range map[string]*scene{"Fail": s, "Ignore": open} {
		guarded.apply(t, harbour.Policy{Name: guarded.namespace, Namespaces: []string{guarded.namespace}, FailurePolicy: failure, Images: []string{"*"}})
	}
	const image = "registry.invalid/shop/web:1.0" // RFC 6761: it never resolves
	_, err := s.dryRun(t.Context(), pod("web", image))
	unable(t, "Fail", err)
	said()
	if _, err := open.dryRun(t.Context(), pod("web", image)); err != nil {
		t.Errorf("Ignore: %v", err)
	}
	if warnings := said(); !strings.Contains(warnings, "registry-unavailable") && !strings.Contains(warnings, "could not be verified") {
		t.Errorf("Ignore: the warnings are %q", warnings)
	}
	signed, err := s.harbour.Signed("shop/web", "1.0")
	must(t, err)
	if _, err := s.dryRun(t.Context(), pod("signed", signed.Name)); err != nil {
		t.Errorf("an image of another registry: %v", err)
	}
}
