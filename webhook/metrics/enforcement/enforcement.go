// Package enforcement has the metrics of policies that the API server evaluates itself (docs/metrics.md).
package enforcement

import "github.com/prometheus/client_golang/prometheus"

// Series are the collectors. Create them with New.
type Series struct {
	policies *prometheus.GaugeVec
	restored prometheus.Counter
}

// New makes collectors with names that begin with prefix.
func New(prefix string) Series {
	return Series{
		policies: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "native_policies", Help: "Policies by the side that enforces them."}, []string{"side"}),
		restored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "native_policies_restored_total", Help: "Native forms of policies that were written again, because the API server had none or another one.",
		}),
	}
}

// Collectors are those to register.
func (s *Series) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.policies, s.restored}
}

// NativePolicies sets the numbers of policies that the API servers and the webhooks enforce.
func (s *Series) NativePolicies(native, webhook int) {
	s.policies.WithLabelValues("native").Set(float64(native))
	s.policies.WithLabelValues("webhook").Set(float64(webhook))
}

// NativeRestored records that another client had changed the native form of a policy.
func (s *Series) NativeRestored() { s.restored.Inc() }
