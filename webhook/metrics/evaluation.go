package metrics

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/claims"
)

// evaluationSeries are the collectors of the evaluation of images: its phases, caches and requests
// to registries.
type evaluationSeries struct {
	phaseSeconds    *prometheus.HistogramVec
	lookups         *prometheus.CounterVec
	shared          *prometheus.CounterVec
	registries      *prometheus.CounterVec
	registrySeconds prometheus.Histogram

	phases       map[gate.Phase]prometheus.Observer
	hosts, words *label
}

func newEvaluationSeries(words *label) evaluationSeries {
	s := evaluationSeries{
		phaseSeconds: histograms("phase_duration_seconds", "Duration of the phases of an image evaluation.", "phase"),
		lookups:      counters("cache_lookups_total", "Cache lookups, by layer and result.", "layer", "result"),
		shared:       counters("shared_cache_total", "Entries of the cache that replicas share, by result.", "result"),
		registries:   counters("registry_requests_total", "HTTP requests to registries, by host and class of status.", "host", "status"),
		registrySeconds: prometheus.NewHistogram(histogramOpts("registry_request_duration_seconds",
			"Time from an HTTP request to a registry to the beginning of the response.")),
		phases: map[gate.Phase]prometheus.Observer{},
		hosts:  newLabel(maxHosts), words: words,
	}
	for _, phase := range []gate.Phase{gate.PhaseResolve, gate.PhaseDiscover, gate.PhaseProve, gate.PhaseDecide} {
		s.phases[phase] = s.phaseSeconds.WithLabelValues(string(phase))
	}
	return s
}

func (s *evaluationSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.phaseSeconds, s.lookups, s.shared, s.registries, s.registrySeconds}
}

// Begin implements gate.Observer.
func (s *evaluationSeries) Begin(ctx context.Context, phase gate.Phase) (context.Context, func()) {
	seconds := s.phases[phase]
	if seconds == nil {
		return ctx, func() {}
	}
	started := time.Now()
	return ctx, func() { seconds.Observe(time.Since(started).Seconds()) }
}

// Asked implements gate.Observer.
func (s *evaluationSeries) Asked(layer claims.Layer, known bool) {
	result := "miss"
	if known {
		result = "hit"
	}
	s.lookups.WithLabelValues(s.words.value(string(layer)), result).Inc()
}

// SharedMemory records results of the cache that replicas share, in the cache's own words.
func (s *evaluationSeries) SharedMemory(result string, entries int) {
	s.shared.WithLabelValues(s.words.value(result)).Add(float64(max(entries, 0)))
}

// RegistryAnswered records one HTTP request to a registry; status 0 means no response. It fits
// registry.WithObserver.
func (s *evaluationSeries) RegistryAnswered(host string, status int, took time.Duration) {
	s.registries.WithLabelValues(s.hosts.value(host), class(status)).Inc()
	s.registrySeconds.Observe(took.Seconds())
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
