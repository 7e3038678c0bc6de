package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
)

// TestAlertRules: the alerts are rules that Prometheus takes, and each fires on its input
// and on no other.
func TestAlertRules(t *testing.T) {
	if testing.Short() {
		t.Skip("builds promtool")
	}
	promtool := peers.Get(t, peers.Promtool)
	promtool.Must(t, "check", "rules", "--lint=all", "--lint-fatal", delivered(t, "alerts.yaml"))
	promtool.Must(t, "test", "rules", delivered(t, "alerts_test.yaml"))
}

// rare are the metrics that a scrape has only once something happened that does not
// happen here; docs/metrics.md has them.
var rare = map[string]bool{
	"quaymaster_panics_total": true, "quaymaster_background_work_total": true,
	"quaymaster_mirror_target_resting": true, "quaymaster_redirects_total": true,
	"quaymaster_shared_cache_total": true, "quaymaster_global_context_usable": true,
	"quaymaster_override_expiry_timestamp_seconds": true, "quaymaster_report_drops_total": true,
	"quaymaster_report_writes_total": true,                                                          // no API of reports is served
	"quaymaster_break_glass_open":    true, "quaymaster_break_glass_expiry_timestamp_seconds": true, // TestBreakGlass has them
}

// TestPrometheus: a real Prometheus scrapes a gateway. The delivered queries, for it and for
// Grafana, can be evaluated; they raise no alert while nothing fails, and do for real faults.
func TestPrometheus(t *testing.T) {
	s := unguarded(t, "prometheus")
	c := gateway.Configuration{}
	c.Trust.Refresh = true // which fails: there is no network
	c.DecisionLog.Folder, c.DecisionLog.Webhook.URL = t.TempDir(), "http://127.0.0.1:1"
	s.gateway = s.freshStart(t, c)
	must(t, s.gateway.Ready(t.Context()))
	m := s.watch(t, s.gateway)
	open := s.in(t, "prometheus-open")
	for failure, guarded := range map[string]*scene{"Fail": s, "Ignore": open} {
		guarded.apply(t, env.Policy{Name: guarded.namespace, Namespaces: []string{guarded.namespace}, FailurePolicy: failure})
	}

	var raised []string
	eventually(t, func(ctx context.Context) error {
		now, err := m.raised(ctx)
		if err == nil {
			raised = now
		}
		if err != nil || len(raised) > 0 {
			return fmt.Errorf("all is well, and raised are %q (%w)", raised, errors.Join(err, errNotYet))
		}
		return nil
	})
	s.violate(t, m)
	t.Run("a registry that does not answer", func(t *testing.T) { s.tryRegistryAlerts(t, m, open) })
	t.Run("a deleted webhook configuration", func(t *testing.T) {
		registered := s.client.AdmissionregistrationV1()
		must(t, registered.ValidatingWebhookConfigurations().Delete(t.Context(), ownName, meta.DeleteOptions{}))
		m.awaitFiring(t, "QuaymasterWebhooksChanged")
		s.awaitConfigurations(t, s.gateway)
	})
	t.Run("no gateway", func(t *testing.T) { s.tryGatewayAlerts(t, m, open) })
	t.Run("queries", func(t *testing.T) { m.tryQueries(t) })
}

// violate has an unsigned image denied, and waits until a scrape knows.
func (s *scene) violate(t *testing.T, m *monitor) {
	bare := s.env.Unsigned("shop/bare", "1.0")
	_, err := s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "an unsigned image", err, "unsigned")
	eventually(t, func(context.Context) error {
		if !m.metricNames(t)["quaymaster_violations_total"] {
			return errNotYet
		}
		return nil
	})
}

// tryRegistryAlerts has the registry break off every connection.
func (s *scene) tryRegistryAlerts(t *testing.T, m *monitor, open *scene) {
	built := 0
	deploy := func(ctx context.Context) {
		built++
		image := s.env.Unsigned("shop/new", fmt.Sprint(built))
		_, _ = s.dryRun(ctx, pod("new", image.Name)) // the metrics say what came of it
		_, _ = open.dryRun(ctx, pod("new", image.Name))
	}
	s.env.Registry.SetFaults(registrytest.Fault{Do: breakOff})
	defer s.env.Registry.SetFaults()
	m.awaitRaised(t, deploy, "QuaymasterRegistryFailing", "QuaymasterCouldNotVerify", "QuaymasterFailOpen")
	m.awaitFiring(t, "QuaymasterFailOpen")
	raised, err := m.raised(t.Context())
	must(t, err)
	for _, name := range raised {
		switch name {
		case "QuaymasterRegistryFailing", "QuaymasterCouldNotVerify", "QuaymasterFailOpen":
		default:
			t.Errorf("a registry is away, and %s is raised", name)
		}
	}
}

// tryGatewayAlerts kills the only replica, creates a broken policy meanwhile, and starts it
// again.
func (s *scene) tryGatewayAlerts(t *testing.T, m *monitor, open *scene) {
	s.gateway.Kill()
	image := s.env.Unsigned("shop/unseen", "1.0")
	m.awaitRaised(t, func(ctx context.Context) {
		_, _ = open.dryRun(ctx, pod("unseen", image.Name))
	}, "QuaymasterNoReadyReplica", "QuaymasterAPIServerFailOpen")
	m.awaitFiring(t, "QuaymasterAPIServerFailOpen")

	registered := s.client.AdmissionregistrationV1()
	must(t, registered.ValidatingWebhookConfigurations().Delete(t.Context(), ownName, meta.DeleteOptions{}))
	must(t, s.plane.ApplyYAML(t.Context(), misspelt))
	t.Cleanup(func() { s.remove(t, "misspelt") })
	s.gateway = s.freshStart(t, s.gateway.Configuration)
	must(t, s.gateway.Ready(t.Context()))
	m.awaitRaised(t, func(context.Context) {}, "QuaymasterPolicyBroken")
	m.await(t, m.alert(t, "QuaymasterNoReadyReplica"), false)
}

// tryQueries evaluates every delivered query, and looks for metrics that are not exported.
func (m *monitor) tryQueries(t *testing.T) {
	known := m.metricNames(t)
	for query, who := range m.queries(t) {
		if _, err := m.holds(t.Context(), query); err != nil {
			t.Errorf("%s: %v", who, err)
		}
		for _, name := range asked.FindAllString(query, -1) {
			if !known[name] && !rare[name] {
				t.Errorf("%s queries %s, which is not exported", who, name)
			}
		}
	}
	if _, err := m.holds(t.Context(), "sum(quaymaster_ready"); err == nil {
		t.Error("a query that is no query is answered")
	}
}
