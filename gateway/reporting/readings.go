package reporting

import (
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/report/decisionlog/sink"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// DecisionLogReadings are the values of the gauges of the decision log and its sinks.
func DecisionLogReadings(of *journal.Journal, followers []*sink.Follower) metrics.DecisionLog {
	s := of.Stats()
	now := metrics.DecisionLog{Written: s.Written, Lost: s.Lost, Failures: s.Failures, Queued: s.Queued, Flushed: s.Flushed, Bytes: s.Bytes}
	for _, f := range followers {
		s := f.Stats()
		now.Sinks = append(now.Sinks, metrics.DecisionLogSink{Name: f.Name(), Delivered: s.Delivered, Dropped: s.Dropped, Failures: s.Failures, Behind: s.Behind})
	}
	return now
}
