package metrics

import "github.com/prometheus/client_golang/prometheus"

// cleanupSeries are the collectors of deletions. Package cleanup has the values of their labels.
type cleanupSeries struct {
	objects, runs *prometheus.CounterVec
	durations     *prometheus.HistogramVec
}

func newCleanupSeries() cleanupSeries {
	lasts := histogramOpts("cleanup_run_duration_seconds", "Duration of runs and passes that delete objects.")
	lasts.Buckets = []float64{.1, 1, 10, 60, 600, 3600}
	return cleanupSeries{
		objects:   counters("cleanup_objects_total", "Objects that policies or their lifetime delete, by outcome.", "cause", "outcome"),
		runs:      counters("cleanup_runs_total", "Runs of policies that delete objects, and passes over lifetimes, by their end.", "cause", "end"),
		durations: prometheus.NewHistogramVec(lasts, []string{"cause"}),
	}
}

func (s *cleanupSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.objects, s.runs, s.durations}
}

// CleanedUp records the outcome for an object, of the cause policy or ttl.
func (s *cleanupSeries) CleanedUp(cause, is string) { s.objects.WithLabelValues(cause, is).Inc() }

// CleanupEnded records the end of a run or a pass, and its duration in seconds.
func (s *cleanupSeries) CleanupEnded(cause, end string, seconds float64) {
	s.runs.WithLabelValues(cause, end).Inc()
	s.durations.WithLabelValues(cause).Observe(seconds)
}
