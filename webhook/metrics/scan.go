package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scanSeries are the collectors of scans of running workloads.
type scanSeries struct {
	objects  prometheus.Counter
	rounds   *prometheus.CounterVec
	duration prometheus.Gauge
	last     prometheus.Gauge
	changes  *prometheus.CounterVec
}

func newScanSeries() scanSeries {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	}
	return scanSeries{
		objects:  prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "scan_objects_total", Help: "Evaluated running objects."}),
		rounds:   counters("scan_rounds_total", "Scans of running workloads, by completeness.", "result"),
		duration: gauge("scan_round_duration_seconds", "Duration of the last scan of running workloads."),
		last:     gauge("scan_last_complete_timestamp_seconds", "When the last complete scan ended, in Unix time; 0 before."),
		changes:  counters("scan_changes_total", "Changes of running workloads that a scan followed, by result.", "result"),
	}
}

func (s *scanSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.objects, s.rounds, s.duration, s.last, s.changes}
}

// Scanned counts evaluated objects.
func (m *Metrics) Scanned(objects int) { m.scans.objects.Add(float64(objects)) }

// Followed counts changes that a scan followed.
func (m *Metrics) Followed(result string, changes int) {
	m.scans.changes.WithLabelValues(m.words.value(result)).Add(float64(max(changes, 0)))
}

// ScanEnded records a scan: its duration, its end, and whether all objects could be evaluated.
func (m *Metrics) ScanEnded(took time.Duration, complete bool, at time.Time) {
	result := "incomplete"
	if complete {
		result = "complete"
		m.scans.last.Set(float64(at.Unix()))
	}
	m.scans.rounds.WithLabelValues(result).Inc()
	m.scans.duration.Set(took.Seconds())
}
