package metrics

import "github.com/prometheus/client_golang/prometheus"

// guardSeries are about policies that only audit whatever they say, and about what became
// of trials.
type guardSeries struct {
	audited  *prometheus.GaugeVec
	trials   *prometheus.CounterVec
	verdicts *prometheus.GaugeVec
}

func newGuardSeries() guardSeries {
	s := guardSeries{
		audited:  gauges("policies_withheld", "Policies that do not deny by what they say now: of a source that audits, or held by the guard.", "by"),
		trials:   counters("policy_trials_total", "Trials of policies against what runs, by what became of them.", "result"),
		verdicts: gauges("dry_verdict_changes", "Verdicts on what runs that differ from those of the version before, by whether they deny.", "denies"),
	}
	s.set(0, 0)
	for _, result := range []string{TrialRefused, TrialHeld, TrialApproved, TrialUnsure} {
		s.trials.WithLabelValues(result).Add(0)
	}
	return s
}

// What becomes of a trial.
const (
	TrialRefused  = "refused"  // at the door
	TrialHeld     = "held"     // it would stop something
	TrialApproved = "approved" // it stops nothing
	TrialUnsure   = "unsure"   // not everything could be looked at
)

func (s guardSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.audited, s.trials, s.verdicts}
}

func (s guardSeries) set(source, guard int) {
	s.audited.WithLabelValues("source").Set(float64(source))
	s.audited.WithLabelValues("guard").Set(float64(guard))
}

// SetWithheld says how many policies only audit since their source does, and how many the
// guard holds.
func (m *Metrics) SetWithheld(source, guard int) { m.guard.set(source, guard) }

// PolicyTried counts a trial.
func (m *Metrics) PolicyTried(result string) { m.guard.trials.WithLabelValues(result).Inc() }

// SetDryVerdicts says how many verdicts differ from those of the version before.
func (m *Metrics) SetDryVerdicts(denied, others int) {
	m.guard.verdicts.WithLabelValues("true").Set(float64(denied))
	m.guard.verdicts.WithLabelValues("false").Set(float64(others))
}
