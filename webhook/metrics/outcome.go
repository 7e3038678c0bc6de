package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// outcomeSeries are the collectors of decisions about objects.
type outcomeSeries struct {
	answers    *prometheus.CounterVec
	failedOpen *prometheus.CounterVec
	violations *prometheus.CounterVec
	stale      prometheus.Counter
	shadowed   *prometheus.CounterVec
}

func newOutcomeSeries() outcomeSeries {
	s := outcomeSeries{
		answers:    counters("outcomes_total", "Evaluated objects by answer; unable: could not be verified, and denied.", "answer"),
		failedOpen: counters("failed_open_total", "Objects admitted by a policy's failure setting although they could not be verified.", "policy"),
		violations: counters("violations_total", "Images and objects that violate a policy, by the effect of a failure; shadow: none.", "policy", "action"),
		shadowed:   counters("shadow_admissions_total", "Admission requests admitted in shadow mode, by endpoint and the answer without it.", "door", "cause", "answer"),
		stale: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "stale_total", Help: "Images allowed by an earlier verification because their registry did not respond.",
		}),
	}
	for _, answer := range []gate.Result{gate.Allow, gate.Deny, gate.Error} {
		s.answers.WithLabelValues(string(answer)) // exports the series with 0
	}
	return s
}

func (s *outcomeSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.answers, s.failedOpen, s.violations, s.stale, s.shadowed}
}

// forget deletes the series of a removed policy.
func (s *outcomeSeries) forget(id string) {
	s.failedOpen.DeleteLabelValues(id)
	s.violations.DeletePartialMatch(prometheus.Labels{"policy": id})
}

// settle counts the outcome of an object. In shadow mode every object is admitted, so failing open
// is not counted.
func (m *Metrics) settle(o *gate.Outcome, shadow bool) {
	m.settled.answers.WithLabelValues(m.words.value(string(o.Result))).Inc()
	if !shadow {
		for _, p := range failedOpen(o) {
			m.settled.failedOpen.WithLabelValues(m.policy(p)).Inc()
		}
	}
	for i := range o.Verdicts {
		if slices.ContainsFunc(o.Verdicts[i].Warnings, func(r policy.Reason) bool { return r.Code == policy.Stale }) {
			m.settled.stale.Inc()
		}
	}
}

// violated counts a failure, audited or not.
func (m *Metrics) violated(p *policy.Policy, result policy.Result, action policy.Action, shadow bool) {
	if result != policy.Fail {
		return
	}
	word := "enforce" // also for an unknown action, which denies
	switch action {
	case policy.Audit:
		word = "audit"
	case policy.Warn:
		word = "warn"
	}
	if shadow {
		word = "shadow"
	}
	m.settled.violations.WithLabelValues(m.policy(p), word).Inc()
}

// failedOpen returns the policies that failed to evaluate an object and admitted it because of
// their failure setting. It returns none for audit policies and for objects that an override
// allows.
func failedOpen(o *gate.Outcome) []*policy.Policy {
	if o.Result != gate.Allow || slices.ContainsFunc(o.Verdicts, func(v gate.Verdict) bool { return v.Override != nil }) {
		return nil
	}
	var open []*policy.Policy
	add := func(p *policy.Policy) {
		if p != nil && p.FailOpen && !slices.Contains(open, p) {
			open = append(open, p)
		}
	}
	for i := range o.Verdicts {
		for _, d := range o.Verdicts[i].Decisions {
			if d.Check != nil && !looked(d.Result) && !d.Check.Action.Admits() {
				add(d.Check.Policy)
			}
		}
	}
	for _, rule := range o.Rules {
		if rule.Err != nil && !rule.Policy.AuditOnly || !looked(rule.Ruling.Result) && !rule.Action.Admits() {
			add(rule.Policy)
		}
	}
	return open
}

// looked reports whether a result is a decision. Unknown results are not.
func looked(result policy.Result) bool {
	return slices.Contains([]policy.Result{"", policy.Pass, policy.Fail, policy.Skipped}, result)
}

// newConfigurations exports all series with 0, so that a rate includes the first write.
func newConfigurations() *prometheus.CounterVec {
	writes := counters("webhook_configuration_writes_total", "Writes of a webhook configuration by the leader, by reason.", "configuration", "reason")
	for _, configuration := range []string{"mutating", "validating"} {
		for _, reason := range []string{"wanted", "foreign", "missing"} {
			writes.WithLabelValues(configuration, reason)
		}
	}
	return writes
}

// ConfigurationWritten records that a webhook configuration, mutating or validating, was written.
// The reason is a word of the writer.
func (m *Metrics) ConfigurationWritten(configuration, reason string) {
	m.configurations.WithLabelValues(m.words.value(configuration), m.words.value(reason)).Inc()
}
