package metrics

import (
	"context"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quaymaster/quaymaster/gate"
)

// Build identifies the program.
type Build struct{ Version, Revision string }

// Metrics holds the gateway's collectors. It is safe for concurrent use. Make one with New.
type Metrics struct {
	registry *prometheus.Registry

	requests        *prometheus.CounterVec
	requestSeconds  *prometheus.HistogramVec
	answers         *prometheus.CounterVec
	panics          *prometheus.CounterVec
	open            prometheus.Gauge
	decisions       *prometheus.CounterVec
	memory          *prometheus.CounterVec
	registries      *prometheus.CounterVec
	registrySeconds prometheus.Histogram
	policies        *prometheus.GaugeVec
	broken          *prometheus.GaugeVec
	shared          *prometheus.CounterVec
	mirrors         mirrorSeries
	reports         reportSeries
	scans           scanSeries
	background      backgroundSeries
	settled         outcomeSeries
	configurations  *prometheus.CounterVec
	glass           *prometheus.CounterVec
	guard           guardSeries

	phases map[gate.Phase]prometheus.Observer
	doors  *label
	words  *label
	hosts  *label
	known  *label // policies
}

// New makes Metrics with its own registry.
func New(build Build) *Metrics {
	m := &Metrics{
		registry:        prometheus.NewRegistry(),
		requests:        counters("requests_total", "HTTP requests to an endpoint, by status.", "door", "status"),
		requestSeconds:  histograms("request_duration_seconds", "Time from a request's header to the end of the response.", "door"),
		answers:         counters("admissions_total", "Admission requests by answer and cause.", "door", "cause", "answer"),
		panics:          counters("panics_total", "Panics of handlers; each one is a defect.", "door"),
		open:            prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "requests_in_flight", Help: "Requests to endpoints in flight."}),
		decisions:       counters("decisions_total", "Decisions on images, by policy and outcome.", "policy", "outcome"),
		memory:          counters("memory_lookups_total", "Cache lookups, by layer and result.", "layer", "result"),
		registries:      counters("registry_requests_total", "HTTP requests to registries, by host and class of status.", "host", "status"),
		registrySeconds: prometheus.NewHistogram(histogramOpts("registry_request_duration_seconds", "Time from an HTTP request to a registry to the beginning of the response.")),
		policies:        gauges("policies", "Policies in the cluster and in folders, by state.", "state"),
		broken:          gauges("policy_broken", "1 for each policy that is broken.", "policy"),
		shared:          counters("shared_memory_total", "Entries of the cache that replicas share, by result.", "result"),
		mirrors:         newMirrorSeries(),
		reports:         newReportSeries(),
		scans:           newScanSeries(),
		background:      newBackgroundSeries(),
		settled:         newOutcomeSeries(),
		configurations:  newConfigurations(),
		glass:           newBreakGlass(),
		guard:           newGuardSeries(),
		phases:          map[gate.Phase]prometheus.Observer{},
		doors:           newLabel(maxWords), words: newLabel(4 * maxWords), hosts: newLabel(maxHosts), known: newLabel(maxPolicies),
	}
	phaseSeconds := histograms("phase_duration_seconds", "Duration of the phases of an image evaluation.", "phase")
	for _, phase := range []gate.Phase{gate.PhaseResolve, gate.PhaseDiscover, gate.PhaseProve, gate.PhaseDecide} {
		m.phases[phase] = phaseSeconds.WithLabelValues(string(phase))
	}
	info := gauges("build_info", "1, with the program's version.", "version", "revision", "go")
	info.WithLabelValues(build.Version, build.Revision, runtime.Version()).Set(1)
	m.registry.MustRegister(
		m.requests, m.requestSeconds, m.answers, m.panics, m.open, m.decisions, phaseSeconds, m.memory,
		m.registries, m.registrySeconds, m.policies, m.broken, m.shared, m.configurations, m.glass, info,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.registry.MustRegister(m.mirrors.collectors()...)
	m.registry.MustRegister(m.reports.collectors()...)
	m.registry.MustRegister(m.scans.collectors()...)
	m.registry.MustRegister(m.background.collectors()...)
	m.registry.MustRegister(m.settled.collectors()...)
	m.registry.MustRegister(m.guard.collectors()...)
	return m
}

const prefix = "quaymaster_"

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
}

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogramOpts(name, help), labels)
}

// histogramOpts sets buckets from the latency of a cache hit to the longest timeout of a webhook.
func histogramOpts(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: prefix + name, Help: help,
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}
}

// Handler serves /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 8 * time.Second})
}

// Enter implements webhook.Observer.
func (m *Metrics) Enter(r *http.Request, door string) (context.Context, func(status int)) {
	door = m.doors.value(door)
	started := time.Now()
	m.open.Inc()
	return r.Context(), func(status int) {
		m.open.Dec()
		m.requestSeconds.WithLabelValues(door).Observe(time.Since(started).Seconds())
		m.requests.WithLabelValues(door, statusText(status)).Inc()
	}
}

// statusText is the label of a status. Non-standard statuses of a handler are other.
func statusText(status int) string {
	if http.StatusText(status) == "" {
		return other
	}
	return strconv.Itoa(status)
}

// Panicked implements webhook.Observer.
func (m *Metrics) Panicked(door string) { m.panics.WithLabelValues(m.doors.value(door)).Inc() }

// Begin implements gate.Observer.
func (m *Metrics) Begin(ctx context.Context, phase gate.Phase) (context.Context, func()) {
	seconds := m.phases[phase]
	if seconds == nil {
		return ctx, func() {}
	}
	started := time.Now()
	return ctx, func() { seconds.Observe(time.Since(started).Seconds()) }
}

// Asked implements gate.Observer.
func (m *Metrics) Asked(layer gate.Layer, known bool) {
	result := "miss"
	if known {
		result = "hit"
	}
	m.memory.WithLabelValues(m.words.value(string(layer)), result).Inc()
}

// SharedMemory records results of the cache that replicas share, in the cache's own words.
func (m *Metrics) SharedMemory(result string, entries int) {
	m.shared.WithLabelValues(m.words.value(result)).Add(float64(max(entries, 0)))
}
