package metrics

import "github.com/prometheus/client_golang/prometheus"

// rolloutSeries are the collectors of policies that are forced to audit, and of impact analyses.
type rolloutSeries struct {
	audited  *prometheus.GaugeVec
	analyses *prometheus.CounterVec
	verdicts *prometheus.GaugeVec
}

func newRolloutSeries() rolloutSeries {
	s := rolloutSeries{
		audited:  gauges("policies_withheld", "Policies that only audit because of their source, or because their impact analysis is pending.", "by"),
		analyses: counters("policy_analyses_total", "Impact analyses of policies against running workloads, by result.", "result"),
		verdicts: gauges("dry_verdict_changes", "Verdicts on running workloads that differ from those of the previous version, by whether they deny.", "denies"),
	}
	s.set(0, 0)
	for _, result := range []string{AnalysisRefused, AnalysisHeld, AnalysisApproved, AnalysisUnsure} {
		s.analyses.WithLabelValues(result).Add(0)
	}
	return s
}

// The results of an impact analysis.
const (
	AnalysisRefused  = "refused"  // rejected at admission
	AnalysisHeld     = "held"     // it would deny a running workload
	AnalysisApproved = "approved" // it denies no running workload
	AnalysisUnsure   = "unsure"   // some workloads could not be evaluated
)

func (s *rolloutSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.audited, s.analyses, s.verdicts}
}

func (s *rolloutSeries) set(source, guard int) {
	s.audited.WithLabelValues("source").Set(float64(source))
	s.audited.WithLabelValues("guard").Set(float64(guard))
}

// SetWithheld sets the number of policies that only audit: because of their source, and because the
// guard holds them.
func (s *rolloutSeries) SetWithheld(source, guard int) { s.set(source, guard) }

// PolicyAnalyzed counts an impact analysis.
func (s *rolloutSeries) PolicyAnalyzed(result string) { s.analyses.WithLabelValues(result).Inc() }

// SetDryVerdicts sets the number of verdicts that differ from those of the previous version.
func (s *rolloutSeries) SetDryVerdicts(denied, others int) {
	s.verdicts.WithLabelValues("true").Set(float64(denied))
	s.verdicts.WithLabelValues("false").Set(float64(others))
}
