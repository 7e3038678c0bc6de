package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// backgroundSeries are the collectors of background work: generate and mutate-existing rules, and
// the values of GlobalContextEntries.
type backgroundSeries struct {
	work     *prometheus.CounterVec
	failures *prometheus.CounterVec // of refreshing an entry
	entries  *label
	words    *label
}

func newBackgroundSeries(words *label) backgroundSeries {
	return backgroundSeries{
		work: counters("background_work_total", "Background changes of objects by generate and mutate-existing rules, by action and result.",
			"action", "outcome"),
		failures: counters("global_context_failures_total", "Failed reads or refreshes of a GlobalContextEntry.", "entry"),
		entries:  newLabel(maxEntries),
		words:    words,
	}
}

func (s *backgroundSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.work, s.failures}
}

// WorkOutcome is the result of a background change of an object.
type WorkOutcome string

// The outcomes.
const (
	WorkDone    WorkOutcome = "done"
	WorkRetried WorkOutcome = "retried"  // the change failed and is retried
	WorkGivenUp WorkOutcome = "given-up" // the change failed and is not retried
)

// Worked records a background change of an object and its action. An empty action, none in the
// label, means that no change was made.
func (s *backgroundSeries) Worked(action string, outcome WorkOutcome) {
	s.work.WithLabelValues(s.words.value(cmp.Or(action, "none")), s.words.value(string(outcome))).Inc()
}

// SetGlobalContext sets the list of GlobalContextEntries. It deletes the series of removed entries,
// and adds new ones with zero failures. It must not be called concurrently.
func (s *backgroundSeries) SetGlobalContext(entries []string) {
	sorted := slices.Sorted(slices.Values(entries))
	for _, entry := range s.entries.set(sorted) {
		s.failures.DeleteLabelValues(entry)
	}
	for _, entry := range sorted {
		if s.entries.knows(entry) {
			s.failures.WithLabelValues(entry).Add(0) // exports the series with 0
		}
	}
}

// GlobalContextFailed records that an entry could not be read or refreshed.
func (s *backgroundSeries) GlobalContextFailed(entry string) {
	if !s.entries.knows(entry) {
		entry = other
	}
	s.failures.WithLabelValues(entry).Inc()
}

// GlobalContext is the state of a GlobalContextEntry.
type GlobalContext struct {
	Entry string
	// Age is the time since the entry was last read; negative if it never was.
	Age time.Duration
	// Usable reports whether rules can read the entry.
	Usable bool
}

// globalContext collects the state of the entries at each scrape.
type globalContext struct {
	read        func() []GlobalContext
	age, usable *prometheus.Desc
	entries     *label
}

func newGlobalContext(read func() []GlobalContext, entries *label) globalContext {
	of := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, []string{"entry"}, nil)
	}
	return globalContext{read: read, entries: entries,
		age:    of("global_context_age_seconds", "Time since a GlobalContextEntry was last read or updated."),
		usable: of("global_context_usable", "1 for each GlobalContextEntry with a usable value, else 0."),
	}
}

// Describe implements prometheus.Collector.
func (c globalContext) Describe(to chan<- *prometheus.Desc) { to <- c.age; to <- c.usable }

// Collect implements prometheus.Collector.
func (c globalContext) Collect(to chan<- prometheus.Metric) {
	for _, entry := range c.read() {
		if !c.entries.knows(entry.Entry) {
			continue
		}
		usable := 0.0
		if entry.Usable {
			usable = 1
		}
		to <- prometheus.MustNewConstMetric(c.usable, prometheus.GaugeValue, usable, entry.Entry)
		if entry.Age >= 0 {
			to <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, entry.Age.Seconds(), entry.Entry)
		}
	}
}
