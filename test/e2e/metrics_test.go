package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestMetrics: requests and answers are counted, and no label grows with images.
func TestMetrics(t *testing.T) {
	s := guard(t, "metrics", gateway.Configuration{})
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.env.Signed("shop/counted", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	broken := s.env.Unsigned("shop/broken", "1.0")
	s.env.Registry.SetFaults(registrytest.Fault{Repository: broken.Repository, Do: breakOff})
	before, err := s.gateway.Metrics(t.Context())
	must(t, err)
	const pods = 5
	for range pods {
		_, err := s.dryRun(t.Context(), pod("signed", signed.Name))
		must(t, err)
		_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
		denied(t, "an unsigned image", err, "unsigned")
	}
	_, err = s.dryRun(t.Context(), pod("broken", broken.Name))
	unverified(t, "a registry that breaks", err)
	after, err := s.gateway.Metrics(t.Context())
	must(t, err)

	id := "ClusterPolicy/" + s.namespace
	for _, row := range []struct {
		least  float64
		name   string
		labels []string
	}{
		{2*pods + 1, "quaymaster_requests_total", []string{"endpoint", "mutate", "status", "200"}},
		{pods, "quaymaster_requests_total", []string{"endpoint", "validate", "status", "200"}},
		{pods + 1, "quaymaster_admissions_total", []string{"endpoint", "mutate", "cause", "decided", "answer", "deny"}},
		{2 * pods, "quaymaster_decisions_total", []string{"policy", id, "outcome", "pass"}},
		{pods, "quaymaster_decisions_total", []string{"policy", id, "outcome", "fail"}},
		{1, "quaymaster_decisions_total", []string{"policy", id, "outcome", "indeterminate"}},
		{2, "quaymaster_phase_duration_seconds_count", []string{"phase", "resolve"}},
		{2, "quaymaster_phase_duration_seconds_count", []string{"phase", "discover"}},
		{1, "quaymaster_phase_duration_seconds_count", []string{"phase", "prove"}},
		{2*pods + 1, "quaymaster_phase_duration_seconds_count", []string{"phase", "decide"}},
		{2, "quaymaster_registry_requests_total", []string{"host", s.env.Registry.Host(), "status", "2xx"}},
		{1, "quaymaster_registry_requests_total", []string{"host", s.env.Registry.Host(), "status", "none"}},
		{pods, "quaymaster_cache_lookups_total", []string{"layer", "facts", "result", "hit"}},
		{pods - 1, "quaymaster_cache_lookups_total", []string{"layer", "tags", "result", "hit"}},
	} {
		grown := gateway.Sum(after, row.name, row.labels...) - gateway.Sum(before, row.name, row.labels...)
		if grown < row.least {
			t.Errorf("%s %v grew by %v, want at least %v", row.name, row.labels, grown, row.least)
		}
	}
	if age := gateway.Sum(after, "quaymaster_trust_age_seconds"); age <= 0 || age > time.Hour.Seconds() {
		t.Errorf("the trust material is %v s old", age)
	}
	if left := time.Until(time.Unix(int64(gateway.Sum(after, "quaymaster_certificate_expiry_timestamp_seconds")), 0)); left < 59*24*time.Hour || left > 91*24*time.Hour {
		t.Errorf("the certificate ends in %s", left)
	}
	if n := gateway.Sum(after, "quaymaster_policies", "state", "ours"); n != 1 {
		t.Errorf("%v policies are ours, want 1", n)
	}
	for _, sample := range after {
		for name, value := range sample.Labels {
			for _, never := range []string{"shop/", "sha256", signed.Manifest.Digest[7:19], "counted", "admin"} {
				if strings.Contains(value, never) {
					t.Errorf("%s has the label %s=%q, which grows with the requests", sample.Name, name, value)
				}
			}
		}
	}
}
