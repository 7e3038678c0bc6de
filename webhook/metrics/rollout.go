package metrics

import "github.com/prometheus/client_golang/prometheus"

// rolloutSeries are the collectors of policies that are forced to audit, and of impact analyses.
type rolloutSeries struct {
	audited  *prometheus.GaugeVec
	trials   *prometheus.CounterVec
	verdicts *prometheus.GaugeVec
}

func newRolloutSeries() rolloutSeries {
	s := rolloutSeries{
		audited:  gauges("policies_withheld", "Policies that only audit because of their source, or because the guard holds them.", "by"),
		trials:   counters("policy_trials_total", "Impact analyses of policies against running workloads, by result.", "result"),
		verdicts: gauges("dry_verdict_changes", "Verdicts on running workloads that differ from those of the previous version, by whether they deny.", "denies"),
	}
	s.set(0, 0)
	for _, result := range []string{TrialRefused, TrialHeld, TrialApproved, TrialUnsure} {
		s.trials.WithLabelValues(result).Add(0)
	}
	return s
}

// The results of an impact analysis.
const (
	TrialRefused  = "refused"  // rejected at admission
	TrialHeld     = "held"     // it would deny a running workload
	TrialApproved = "approved" // it denies no running workload
	TrialUnsure   = "unsure"   // some workloads could not be evaluated
)

func (s *rolloutSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.audited, s.trials, s.verdicts}
}

func (s *rolloutSeries) set(source, guard int) {
	s.audited.WithLabelValues("source").Set(float64(source))
	s.audited.WithLabelValues("guard").Set(float64(guard))
}

// SetWithheld sets the number of policies that only audit: because of their source, and because the
// guard holds them.
func (s *rolloutSeries) SetWithheld(source, guard int) { s.set(source, guard) }

// PolicyTried counts an impact analysis.
func (s *rolloutSeries) PolicyTried(result string) { s.trials.WithLabelValues(result).Inc() }

// SetDryVerdicts sets the number of verdicts that differ from those of the previous version.
func (s *rolloutSeries) SetDryVerdicts(denied, others int) {
	s.verdicts.WithLabelValues("true").Set(float64(denied))
	s.verdicts.WithLabelValues("false").Set(float64(others))
}
