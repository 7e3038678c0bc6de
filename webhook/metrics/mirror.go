package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// mirrorSeries are the collectors of mirrors and their targets.
type mirrorSeries struct {
	documents   *prometheus.GaugeVec
	broken      *prometheus.GaugeVec
	redirects   *prometheus.CounterVec
	resting     *prometheus.GaugeVec
	transitions *prometheus.CounterVec

	known   *label // documents
	targets *label
}

func newMirrorSeries() mirrorSeries {
	return mirrorSeries{
		documents:   gauges("mirrors", "Mirror documents in the cluster and in files, by state.", "state"),
		broken:      gauges("mirror_broken", "1 for each broken mirror document, even if an older version is in use.", "mirror"),
		redirects:   counters("redirects_total", "Images that a mirror matches, by document and outcome.", "mirror", "outcome"),
		resting:     gauges("mirror_target_resting", "1 while requests to a target's registry are suspended because it does not respond.", "registry"),
		transitions: counters("mirror_target_transitions_total", "State changes of a target's registry, by new state.", "registry", "to"),
		known:       newLabel(maxMirrors), targets: newLabel(maxTargets),
	}
}

func (s *mirrorSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.documents, s.broken, s.redirects, s.resting, s.transitions}
}

// MirrorState is the state of a mirror document.
type MirrorState string

// The states.
const (
	MirrorActive MirrorState = "active"
	// MirrorOutdated means that the document is invalid and its last valid version is in use.
	MirrorOutdated MirrorState = "outdated"
	// MirrorBroken means that the document is invalid and no earlier version is available.
	MirrorBroken MirrorState = "broken"
)

// Mirror is a mirror document and its state.
type Mirror struct {
	// ID is kind and name, as in RegistryMirror/hub.
	ID    string
	State MirrorState
}

// SetMirrors sets the list of mirror documents and deletes the series of removed ones. It must not
// be called concurrently.
func (s *mirrorSeries) SetMirrors(mirrors []Mirror) {
	count := map[MirrorState]int{MirrorActive: 0, MirrorOutdated: 0, MirrorBroken: 0}
	var ids []string
	for _, mirror := range mirrors {
		if _, ok := count[mirror.State]; !ok {
			continue
		}
		count[mirror.State]++
		ids = append(ids, mirror.ID)
	}
	slices.Sort(ids)
	for _, id := range s.known.set(ids) {
		s.redirects.DeletePartialMatch(prometheus.Labels{"mirror": id})
	}
	for state, n := range count {
		s.documents.WithLabelValues(string(state)).Set(float64(n))
	}
	s.broken.Reset()
	for _, mirror := range mirrors {
		if mirror.State != MirrorActive && s.known.knows(mirror.ID) {
			s.broken.WithLabelValues(mirror.ID).Set(1)
		}
	}
}

// SetTargets sets the registries of the targets. It deletes the series of removed ones; a new one
// counts as responsive. It must not be called concurrently.
func (s *mirrorSeries) SetTargets(registries []string) {
	sorted := slices.Sorted(slices.Values(registries))
	for _, registry := range s.targets.set(sorted) {
		s.resting.DeleteLabelValues(registry)
		s.transitions.DeletePartialMatch(prometheus.Labels{"registry": registry})
	}
	for _, registry := range sorted {
		if s.targets.knows(registry) {
			s.resting.WithLabelValues(registry).Add(0) // exports the series with 0
		}
	}
}

// TargetChanged records that requests to a target's registry are suspended or resumed.
func (s *mirrorSeries) TargetChanged(registry string, resting bool) {
	to, value := "answering", 0.0
	if resting {
		to, value = "resting", 1
	}
	if !s.targets.knows(registry) {
		s.transitions.WithLabelValues(other, to).Inc()
		return
	}
	s.transitions.WithLabelValues(registry, to).Inc()
	s.resting.WithLabelValues(registry).Set(value)
}

// redirected records the result of a mirror for an image.
func (s *mirrorSeries) redirected(v *gate.Verdict) {
	if v.Redirect == nil {
		return
	}
	id, _, _ := strings.Cut(v.Redirect.Mirror, "[") // all entries of a document share one series
	if !s.known.knows(id) {
		id = other
	}
	if outcome := redirectOutcome(v); outcome != "" {
		s.redirects.WithLabelValues(id, outcome).Inc()
	}
}

// redirectOutcome returns the label of the result. It is empty for an image that is denied
// independently of mirrors.
func redirectOutcome(v *gate.Verdict) string {
	switch {
	case !v.Redirect.Target.IsZero():
		return "chosen"
	case slices.ContainsFunc(v.Reasons, func(r policy.Reason) bool { return r.Code == policy.NoMirror }):
		return "denied"
	case v.Result == gate.Deny, v.Result == gate.Error:
		return ""
	}
	return string(policy.NotMirrored)
}
