package health

import (
	"bytes"
	"fmt"
	"time"

	client "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// maxMetrics bounds the metrics of a replica in bytes: 2,000 policies take about 1 MiB.
	maxMetrics = 16 << 20
	prefix     = "quaymaster_"
)

// samples are the metrics of a replica by name (docs/metrics.md).
type samples map[string]*client.MetricFamily

// parseSamples reads the text format of Prometheus.
func parseSamples(text []byte) (samples, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse its metrics: %w", err)
	}
	if _, ok := families[prefix+"build_info"]; !ok {
		return nil, fmt.Errorf("its metrics are not those of a gateway: %sbuild_info is missing", prefix)
	}
	return families, nil
}

// each calls yield for each sample of a gauge or counter.
func (s samples) each(name string, yield func(labels map[string]string, value float64)) {
	family := s[prefix+name]
	for _, metric := range family.GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetUntyped().GetValue()
		yield(labels, value)
	}
}

// value returns the only sample of a name; false if there is none.
func (s samples) value(name string) (float64, bool) {
	value, found := 0.0, false
	s.each(name, func(_ map[string]string, v float64) { value, found = v, true })
	return value, found
}

// label returns a label of the first sample of a name; empty if there is none.
func (s samples) label(name, label string) string {
	found := ""
	s.each(name, func(labels map[string]string, _ float64) {
		if found == "" {
			found = labels[label]
		}
	})
	return found
}

// time returns a sample in Unix time; the zero time for 0 and for none.
func (s samples) time(name string) time.Time {
	value, _ := s.value(name)
	return unix(value)
}

// maxUnix is the last second that JSON has a form for, in the year 9999.
const maxUnix = 253402300799

// unix is a time of a metric; zero for a value that is none.
func unix(value float64) time.Time {
	if !(value > 0 && value <= maxUnix) {
		return time.Time{}
	}
	return time.Unix(int64(value), 0).UTC()
}
