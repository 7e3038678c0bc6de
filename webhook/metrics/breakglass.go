package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// OpenNamespace is a namespace that is excluded from admission.
type OpenNamespace struct {
	Name string
	// Until is the end of the exclusion; zero if unknown.
	Until time.Time
}

// openNamespaces collects the open namespaces and their end.
type openNamespaces struct {
	read       func() []OpenNamespace
	count, end *prometheus.Desc
}

func newOpenNamespaces(read func() []OpenNamespace) openNamespaces {
	return openNamespaces{
		read:  read,
		count: prometheus.NewDesc(prefix+"break_glass_open", "Namespaces with break glass, as read by the leader; 0 on other replicas.", nil, nil),
		end: prometheus.NewDesc(prefix+"break_glass_expiry_timestamp_seconds",
			"End of break glass of a namespace, in Unix time; 0 if unknown.", []string{"open_namespace"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (o openNamespaces) Describe(to chan<- *prometheus.Desc) { to <- o.count; to <- o.end }

// Collect implements prometheus.Collector. Beyond the limit it omits the ones that end last; the
// count includes them.
func (o openNamespaces) Collect(to chan<- prometheus.Metric) {
	list := slices.Clone(o.read())
	to <- prometheus.MustNewConstMetric(o.count, prometheus.GaugeValue, float64(len(list)))
	slices.SortFunc(list, func(a, b OpenNamespace) int { return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.Name, b.Name)) })
	names := newLabel(maxOpen)
	for _, each := range list {
		if names.knows(each.Name) {
			continue // a duplicate would fail the whole scrape
		}
		if name := names.value(each.Name); name != other {
			to <- prometheus.MustNewConstMetric(o.end, prometheus.GaugeValue, unix(each.Until), name)
		}
	}
}
