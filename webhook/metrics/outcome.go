package metrics

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// decisionSeries are the collectors of policies, and of decisions about objects.
type decisionSeries struct {
	decisions  *prometheus.CounterVec
	outcomes   *prometheus.CounterVec
	failedOpen *prometheus.CounterVec
	violations *prometheus.CounterVec
	stale      prometheus.Counter
	policies   *prometheus.GaugeVec
	broken     *prometheus.GaugeVec

	known, words *label // policies, and others
}

func newDecisionSeries(words *label) decisionSeries {
	s := decisionSeries{
		decisions:  counters("decisions_total", "Decisions on images, by policy and outcome.", "policy", "outcome"),
		outcomes:   counters("outcomes_total", "Evaluated objects by result; error: could not be verified, and denied.", "result"),
		failedOpen: counters("failed_open_total", "Objects admitted by a policy's failure setting although they could not be verified.", "policy"),
		violations: counters("violations_total", "Images and objects that violate a policy, by the effect of a failure; shadow: none.", "policy", "action"),
		stale: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "stale_total", Help: "Images allowed by an earlier verification because their registry did not respond.",
		}),
		policies: gauges("policies", "Policies in the cluster and in folders, by state.", "state"),
		broken:   gauges("policy_broken", "1 for each policy that is broken.", "policy"),
		known:    newLabel(maxPolicies), words: words,
	}
	for _, result := range []gate.Result{gate.Allow, gate.Deny, gate.Error, gate.Unchecked} {
		s.outcomes.WithLabelValues(string(result)) // exports the series with 0
	}
	return s
}

func (s *decisionSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.decisions, s.outcomes, s.failedOpen, s.violations, s.stale, s.policies, s.broken}
}

func (s *decisionSeries) decided(outcome *gate.Outcome, shadow bool) {
	s.settle(outcome, shadow)
	for i := range outcome.Verdicts {
		for _, d := range outcome.Verdicts[i].Decisions {
			if d.Check == nil || d.Check.Policy == nil {
				continue
			}
			s.decisions.WithLabelValues(s.policy(d.Check.Policy), s.words.value(string(d.Result))).Inc()
			s.violated(d.Check.Policy, d.Result, d.Check.Action, shadow)
		}
	}
	for _, rule := range outcome.Rules {
		if rule.Policy != nil && rule.Err != nil {
			s.decisions.WithLabelValues(s.policy(rule.Policy), string(policy.Indeterminate)).Inc()
		}
		if rule.Policy != nil && rule.OfObject() {
			s.decisions.WithLabelValues(s.policy(rule.Policy), s.words.value(string(cmp.Or(rule.Ruling.Result, policy.Pass)))).Inc()
			s.violated(rule.Policy, rule.Ruling.Result, rule.Action, shadow)
		}
	}
}

func (s *decisionSeries) policy(p *policy.Policy) string {
	if id := p.ID(); s.known.knows(id) {
		return id
	}
	return other
}

// settle counts the outcome of an object. In shadow mode every object is admitted, so failing open
// is not counted.
func (s *decisionSeries) settle(o *gate.Outcome, shadow bool) {
	s.outcomes.WithLabelValues(s.words.value(string(o.Result))).Inc()
	if !shadow {
		for _, p := range failedOpen(o) {
			s.failedOpen.WithLabelValues(s.policy(p)).Inc()
		}
	}
	for i := range o.Verdicts {
		if slices.ContainsFunc(o.Verdicts[i].Warnings, func(r policy.Reason) bool { return r.Code == policy.Stale }) {
			s.stale.Inc()
		}
	}
}

// violated counts a failure, audited or not.
func (s *decisionSeries) violated(p *policy.Policy, result policy.Result, action policy.Action, shadow bool) {
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
	s.violations.WithLabelValues(s.policy(p), word).Inc()
}

// failedOpen returns the policies that failed to evaluate an object and admitted it because of
// their failure setting. It returns none for audit policies and for objects that an override
// allows.
func failedOpen(o *gate.Outcome) []*policy.Policy {
	if !o.Result.Admits() || slices.ContainsFunc(o.Verdicts, func(v gate.Verdict) bool { return v.Override != nil }) {
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
