package metrics

import "github.com/prometheus/client_golang/prometheus"

// reportSeries are the collectors of reports in the cluster.
type reportSeries struct {
	writes *prometheus.CounterVec
	drops  *prometheus.CounterVec
	words  *label
}

func newReportSeries(words *label) reportSeries {
	return reportSeries{
		writes: counters("report_writes_total", "Checks of reports in the cluster for new results, by result.", "result"),
		drops:  counters("report_drops_total", "Results that were not put into a report, by reason.", "reason"),
		words:  words,
	}
}

func (s *reportSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.writes, s.drops}
}

// ReportWritten records the result of writing a report, in the writer's own words.
func (s *reportSeries) ReportWritten(result string) {
	s.writes.WithLabelValues(s.words.value(result)).Inc()
}

// ReportDropped records entries that were not put into a report, by reason.
func (s *reportSeries) ReportDropped(reason string, count int) {
	s.drops.WithLabelValues(s.words.value(reason)).Add(float64(max(count, 0)))
}
