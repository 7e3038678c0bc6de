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
	words    *label
}

func newScanSeries(words *label) scanSeries {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	}
	return scanSeries{
		objects:  prometheus.NewCounter(prometheus.CounterOpts{Name: prefix + "scan_objects_total", Help: "Evaluated running objects."}),
		rounds:   counters("scan_rounds_total", "Scans of running workloads, by completeness.", "result"),
		duration: gauge("scan_round_duration_seconds", "Duration of the last scan of running workloads."),
		last:     gauge("scan_last_complete_timestamp_seconds", "When the last complete scan ended, in Unix time; 0 before."),
		changes:  counters("scan_changes_total", "Changes of running workloads that a scan followed, by result.", "result"),
		words:    words,
	}
}

func (s *scanSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.objects, s.rounds, s.duration, s.last, s.changes}
}

// Scanned counts evaluated objects.
func (s *scanSeries) Scanned(objects int) { s.objects.Add(float64(objects)) }

// Followed counts changes that a scan followed.
func (s *scanSeries) Followed(result string, changes int) {
	s.changes.WithLabelValues(s.words.value(result)).Add(float64(max(changes, 0)))
}

// ScanEnded records a scan: its duration, its end, and whether all objects could be evaluated.
func (s *scanSeries) ScanEnded(took time.Duration, complete bool, at time.Time) {
	result := "incomplete"
	if complete {
		result = "complete"
		s.last.Set(float64(at.Unix()))
	}
	s.rounds.WithLabelValues(result).Inc()
	s.duration.Set(took.Seconds())
}
