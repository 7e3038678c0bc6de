package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

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
func (s *decisionSeries) SetPolicies(policies []Policy) {
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
	for _, id := range s.known.set(ids) {
		s.decisions.DeletePartialMatch(map[string]string{"policy": id})
		s.failedOpen.DeleteLabelValues(id)
		s.violations.DeletePartialMatch(prometheus.Labels{"policy": id})
	}
	for state, n := range count {
		s.policies.WithLabelValues(string(state)).Set(float64(n))
	}
	s.broken.Reset()
	for _, p := range policies {
		if p.State == Broken && s.known.knows(p.ID) {
			s.broken.WithLabelValues(p.ID).Set(1)
		}
		if p.FailOpen && s.known.knows(p.ID) {
			s.failedOpen.WithLabelValues(p.ID).Add(0) // a rate includes the first event
		}
	}
}
