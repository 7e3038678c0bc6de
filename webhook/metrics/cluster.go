package metrics

import "github.com/prometheus/client_golang/prometheus"

// clusterSeries are the collectors of webhook configurations and of break glass.
type clusterSeries struct {
	configurations *prometheus.CounterVec
	breakGlass     *prometheus.CounterVec

	words *label
}

func newClusterSeries(words *label) clusterSeries {
	return clusterSeries{
		configurations: newConfigurations(),
		breakGlass:     counters("break_glass_total", "Events of break glass: namespaces opened, changed while open, or closed, by reason.", "event"),
		words:          words,
	}
}

func (s *clusterSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.configurations, s.breakGlass}
}

// newConfigurations exports all series with 0, so that a rate includes the first write.
func newConfigurations() *prometheus.CounterVec {
	writes := counters("webhook_configuration_writes_total", "Writes of a webhook configuration by the leader, by reason.", "configuration", "reason")
	for _, configuration := range []string{"mutating", "validating"} {
		for _, reason := range []string{"wanted", "foreign", "missing"} {
			writes.WithLabelValues(configuration, reason)
		}
	}
	return writes
}

// ConfigurationWritten records that a webhook configuration, mutating or validating, was written.
// The reason is a word of the writer.
func (s *clusterSeries) ConfigurationWritten(configuration, reason string) {
	s.configurations.WithLabelValues(s.words.value(configuration), s.words.value(reason)).Inc()
}

// BreakGlass records an event of an open namespace: opened, changed, or the reason for closing it.
func (s *clusterSeries) BreakGlass(event string) {
	s.breakGlass.WithLabelValues(s.words.value(event)).Inc()
}
