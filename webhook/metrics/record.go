package metrics

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// Admitted records one response of an admission endpoint: the cause as webhook/admission names it,
// and whether the request was allowed.
func (m *Metrics) Admitted(door, cause string, allowed bool) {
	answer := "deny"
	if allowed {
		answer = "allow"
	}
	m.answers.WithLabelValues(m.doors.value(door), m.words.value(cause), answer).Inc()
}

// Shadowed replaces Admitted in shadow mode. It records the response that the endpoint would have
// given.
func (m *Metrics) Shadowed(door, cause string, allowed bool) {
	answer := "deny"
	if allowed {
		answer = "allow"
	}
	m.settled.shadowed.WithLabelValues(m.doors.value(door), m.words.value(cause), answer).Inc()
}

// Decided records the results of policies and mirrors for each image of an object. Audited and
// warned failures also count as "fail".
func (m *Metrics) Decided(outcome gate.Outcome) { m.decided(&outcome, false) }

// DecidedInShadow is Decided for decisions that are not enforced.
func (m *Metrics) DecidedInShadow(outcome gate.Outcome) { m.decided(&outcome, true) }

func (m *Metrics) decided(outcome *gate.Outcome, shadow bool) {
	m.settle(outcome, shadow)
	for i := range outcome.Verdicts {
		m.redirected(&outcome.Verdicts[i])
		for _, d := range outcome.Verdicts[i].Decisions {
			if d.Check == nil || d.Check.Policy == nil {
				continue
			}
			m.decisions.WithLabelValues(m.policy(d.Check.Policy), m.words.value(string(d.Result))).Inc()
			m.violated(d.Check.Policy, d.Result, d.Check.Action, shadow)
		}
	}
	for _, rule := range outcome.Rules {
		if rule.Policy != nil && rule.Err != nil {
			m.decisions.WithLabelValues(m.policy(rule.Policy), string(policy.Indeterminate)).Inc()
		}
		if rule.Policy != nil && rule.OfObject() {
			m.decisions.WithLabelValues(m.policy(rule.Policy), m.words.value(string(cmp.Or(rule.Ruling.Result, policy.Pass)))).Inc()
			m.violated(rule.Policy, rule.Ruling.Result, rule.Action, shadow)
		}
	}
}

func (m *Metrics) policy(p *policy.Policy) string {
	if id := p.ID(); m.known.knows(id) {
		return id
	}
	return other
}

// RegistryAnswered records one HTTP request to a registry; status 0 means no response. It fits
// registry.WithObserver.
func (m *Metrics) RegistryAnswered(host string, status int, took time.Duration) {
	m.registries.WithLabelValues(m.hosts.value(host), class(status)).Inc()
	m.registrySeconds.Observe(took.Seconds())
}

func class(status int) string {
	switch {
	case status == 0:
		return "none"
	case status >= 100 && status < 600:
		return strconv.Itoa(status/100) + "xx"
	}
	return other
}

// Policy is one policy and its state.
type Policy struct {
	// ID as policy.Policy.ID.
	ID    string
	State State
	// FailOpen admits objects that could not be evaluated.
	FailOpen bool
}

// State is one of three.
type State string

// The states.
const (
	Ours    State = "ours"
	NotOurs State = "not-ours"
	Broken  State = "broken"
)

// SetPolicies sets the list of policies and deletes the series of removed ones. It must not be
// called concurrently.
func (m *Metrics) SetPolicies(policies []Policy) {
	count := map[State]int{Ours: 0, NotOurs: 0, Broken: 0}
	var ids []string
	for _, p := range policies {
		if _, ok := count[p.State]; !ok {
			continue
		}
		count[p.State]++
		if p.State != NotOurs {
			ids = append(ids, p.ID)
		}
	}
	// Sorted: the choice beyond the limit must not depend on the order of a map.
	slices.Sort(ids)
	for _, id := range m.known.set(ids) {
		m.decisions.DeletePartialMatch(map[string]string{"policy": id})
		m.settled.forget(id)
	}
	for state, n := range count {
		m.policies.WithLabelValues(string(state)).Set(float64(n))
	}
	m.broken.Reset()
	for _, p := range policies {
		if p.State == Broken && m.known.knows(p.ID) {
			m.broken.WithLabelValues(p.ID).Set(1)
		}
		if p.FailOpen && m.known.knows(p.ID) {
			m.settled.failedOpen.WithLabelValues(p.ID).Add(0) // a rate includes the first event
		}
	}
}
