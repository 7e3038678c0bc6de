package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// DecisionLog holds the statistics of a decision log.
type DecisionLog struct {
	// Written counts records, Lost decisions without a record, and Failures disk errors.
	Written, Lost, Failures uint64
	// Queued is the number of decisions in the write queue.
	Queued int
	// Flushed is the last time when all written records were on disk; zero: never.
	Flushed time.Time
	// Bytes is the size of its files.
	Bytes int64
	Sinks []DecisionLogSink
}

// DecisionLogSink holds the statistics of one sink.
type DecisionLogSink struct {
	// Name is one of the gateway's fixed words.
	Name string
	// Delivered and Dropped count lines, Failures attempts; Behind is the number of lines that are
	// not delivered yet.
	Delivered, Dropped, Failures, Behind uint64
}

// WatchDecisionLog exports the statistics that read returns at each scrape. It may be called once.
func (m *Metrics) WatchDecisionLog(read func() DecisionLog) error {
	if err := m.registry.Register(newDecisionLogSeries(read)); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// decisionLogSeries reads once per scrape, so that its numbers are consistent.
type decisionLogSeries struct {
	read func() DecisionLog

	written, lost, failures, queued, flushed, bytes *prometheus.Desc
	delivered, dropped, failed, behind              *prometheus.Desc
}

func newDecisionLogSeries(read func() DecisionLog) *decisionLogSeries {
	one := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+"decision_log_"+name, help, labels, nil)
	}
	return &decisionLogSeries{
		read:      read,
		written:   one("records_total", "Decisions written to the decision log."),
		lost:      one("lost_total", "Decisions missing in the decision log because its queue was full or the disk failed."),
		failures:  one("failures_total", "Disk errors of the decision log."),
		queued:    one("queue", "Decisions in the decision log's write queue."),
		flushed:   one("flushed_timestamp_seconds", "When the decision log was last flushed to disk, in Unix time; 0: never."),
		bytes:     one("bytes", "Size of the decision log's files at the last measurement, in bytes."),
		delivered: one("sink_delivered_total", "Lines of the decision log that a sink accepted.", "sink"),
		dropped:   one("sink_dropped_total", "Lines of the decision log that were removed before delivery.", "sink"),
		failed:    one("sink_failures_total", "Failed deliveries to a sink.", "sink"),
		behind:    one("sink_behind", "Lines that are not delivered yet.", "sink"),
	}
}

// Describe implements prometheus.Collector.
func (s *decisionLogSeries) Describe(to chan<- *prometheus.Desc) {
	for _, each := range []*prometheus.Desc{s.written, s.lost, s.failures, s.queued, s.flushed, s.bytes, s.delivered, s.dropped, s.failed, s.behind} {
		to <- each
	}
}

// Collect implements prometheus.Collector.
func (s *decisionLogSeries) Collect(to chan<- prometheus.Metric) {
	now := s.read()
	count := func(of *prometheus.Desc, value uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.CounterValue, float64(value), labels...)
	}
	gauge := func(of *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, value, labels...)
	}
	count(s.written, now.Written)
	count(s.lost, now.Lost)
	count(s.failures, now.Failures)
	gauge(s.queued, float64(now.Queued))
	gauge(s.bytes, float64(now.Bytes))
	flushed := 0.0
	if !now.Flushed.IsZero() {
		flushed = float64(now.Flushed.UnixMilli()) / 1000
	}
	gauge(s.flushed, flushed)
	for _, sink := range now.Sinks {
		count(s.delivered, sink.Delivered, sink.Name)
		count(s.dropped, sink.Dropped, sink.Name)
		count(s.failed, sink.Failures, sink.Name)
		gauge(s.behind, float64(sink.Behind), sink.Name)
	}
}
