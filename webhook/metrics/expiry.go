package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// trustEnds collects the expiry of the parts of the trusted root.
type trustEnds struct {
	read func() map[string]time.Time
	end  *prometheus.Desc
	part *label
}

func newTrustEnds(read func() map[string]time.Time) trustEnds {
	return trustEnds{
		read: read, part: newLabel(maxWords),
		end: prometheus.NewDesc(prefix+"trust_expiry_timestamp_seconds",
			"Latest expiry of a part of the trusted root, in Unix time; 0: never.", []string{"part"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (t trustEnds) Describe(to chan<- *prometheus.Desc) { to <- t.end }

// Collect implements prometheus.Collector.
func (t trustEnds) Collect(to chan<- prometheus.Metric) {
	for part, end := range t.read() {
		if name := t.part.value(part); name != other {
			to <- prometheus.MustNewConstMetric(t.end, prometheus.GaugeValue, unix(end), name)
		}
	}
}

// overrides collects the expiry of ImageOverrides.
type overrides struct {
	read func() []Override
	end  *prometheus.Desc
}

func newOverrides(read func() []Override) overrides {
	return overrides{
		read: read,
		end: prometheus.NewDesc(prefix+"override_expiry_timestamp_seconds",
			"Expiry of an ImageOverride, in Unix time; 0: it is broken, and in force until it is fixed.", []string{"override", "effect"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (o overrides) Describe(to chan<- *prometheus.Desc) { to <- o.end }

// Collect implements prometheus.Collector. Beyond the limit it omits the ones that end last.
func (o overrides) Collect(to chan<- prometheus.Metric) {
	list := slices.Clone(o.read())
	slices.SortFunc(list, func(a, b Override) int { return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.Name, b.Name)) })
	names, effects := newLabel(maxOverrides), newLabel(maxWords)
	for _, each := range list {
		if names.knows(each.Name) {
			continue // a duplicate would fail the whole scrape
		}
		name := names.value(each.Name)
		if name == other {
			continue
		}
		to <- prometheus.MustNewConstMetric(o.end, prometheus.GaugeValue, unix(each.Expires), name, effects.value(each.Effect))
	}
}
