package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/metrics/enforcement"
)

// Build identifies the program.
type Build struct{ Version, Revision string }

// Metrics holds the gateway's collectors, each part its own. It is safe for concurrent use. Make one with New.
type Metrics struct {
	registry *prometheus.Registry

	requestSeries
	evaluationSeries
	decisionSeries
	mirrorSeries
	reportSeries
	scanSeries
	backgroundSeries
	cleanupSeries
	enforcement.Series
	clusterSeries
	rolloutSeries
}

// New makes Metrics with its own registry.
func New(build Build) *Metrics {
	words := newLabel(4 * maxWords)
	m := &Metrics{
		registry:         prometheus.NewRegistry(),
		requestSeries:    newRequestSeries(words),
		evaluationSeries: newEvaluationSeries(words),
		decisionSeries:   newDecisionSeries(words),
		mirrorSeries:     newMirrorSeries(),
		reportSeries:     newReportSeries(words),
		scanSeries:       newScanSeries(words),
		backgroundSeries: newBackgroundSeries(words),
		cleanupSeries:    newCleanupSeries(),
		Series:           enforcement.New(prefix),
		clusterSeries:    newClusterSeries(words),
		rolloutSeries:    newRolloutSeries(),
	}
	info := gauges("build_info", "1, with the program's version.", "version", "revision", "go")
	info.WithLabelValues(build.Version, build.Revision, runtime.Version()).Set(1)
	m.registry.MustRegister(append(m.Collectors(), info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))...)
	for _, part := range []interface{ collectors() []prometheus.Collector }{
		&m.requestSeries, &m.evaluationSeries, &m.decisionSeries, &m.mirrorSeries, &m.reportSeries,
		&m.scanSeries, &m.backgroundSeries, &m.cleanupSeries, &m.clusterSeries, &m.rolloutSeries,
	} {
		m.registry.MustRegister(part.collectors()...)
	}
	return m
}

// Decided records the results for each image of an object. Audited and warned failures also count as "fail".
func (m *Metrics) Decided(outcome gate.Outcome) { m.record(&outcome, false) }

// DecidedInShadow is Decided for decisions that are not enforced.
func (m *Metrics) DecidedInShadow(outcome gate.Outcome) { m.record(&outcome, true) }

func (m *Metrics) record(outcome *gate.Outcome, shadow bool) {
	m.decided(outcome, shadow)
	for i := range outcome.Verdicts {
		m.redirected(&outcome.Verdicts[i])
	}
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
