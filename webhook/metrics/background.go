package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// backgroundSeries are the collectors of what is done without a request: what rules
// about other objects want, and the values of GlobalContextEntries.
type backgroundSeries struct {
	work     *prometheus.CounterVec
	failures *prometheus.CounterVec // of refreshing an entry
	entries  *label
}

func newBackgroundSeries() backgroundSeries {
	return backgroundSeries{
		work:     counters("background_work_total", "Objects that a rule about other objects wants made, changed or deleted, by what was done and what became of it.", "action", "outcome"),
		failures: counters("global_context_failures_total", "Times that a GlobalContextEntry could not be read or refreshed.", "entry"),
		entries:  newLabel(maxEntries),
	}
}

func (s *backgroundSeries) collectors() []prometheus.Collector {
	return []prometheus.Collector{s.work, s.failures}
}

// WorkOutcome is what became of an object that a rule wants.
type WorkOutcome string

// The outcomes.
const (
	WorkDone WorkOutcome = "done"
	// WorkRetried: it could not be done, and is tried again.
	WorkRetried WorkOutcome = "retried"
	// WorkGivenUp: it could not be done, and is not tried again.
	WorkGivenUp WorkOutcome = "given-up"
)

// noAction stands for what was not done, of which nobody says what it would have been.
const noAction = "none"

// Worked records what was done to an object because of another, in a word for the
// action; an empty one is for what was not done.
func (m *Metrics) Worked(action string, outcome WorkOutcome) {
	m.background.work.WithLabelValues(m.words.value(cmp.Or(action, noAction)), m.words.value(string(outcome))).Inc()
}

// SetGlobalContext says which GlobalContextEntries there are. The series of those that
// are gone go with them, and a new one has not failed. One caller at a time.
func (m *Metrics) SetGlobalContext(entries []string) {
	s := &m.background
	sorted := slices.Sorted(slices.Values(entries))
	for _, entry := range s.entries.set(sorted) {
		s.failures.DeleteLabelValues(entry)
	}
	for _, entry := range sorted {
		if s.entries.knows(entry) {
			s.failures.WithLabelValues(entry).Add(0) // so that it is shown
		}
	}
}

// GlobalContextFailed records that an entry could not be read or refreshed.
func (m *Metrics) GlobalContextFailed(entry string) {
	if !m.background.entries.knows(entry) {
		entry = other
	}
	m.background.failures.WithLabelValues(entry).Inc()
}

// GlobalContext is what is known of a GlobalContextEntry.
type GlobalContext struct {
	Entry string
	// Age is how long ago it was read; less than 0 for one that never was.
	Age time.Duration
	// Usable: rules that read it can be asked.
	Usable bool
}

// globalContext collects what is known of the entries when it is asked.
type globalContext struct {
	read        func() []GlobalContext
	age, usable *prometheus.Desc
	entries     *label
}

func newGlobalContext(read func() []GlobalContext, entries *label) globalContext {
	of := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+name, help, []string{"entry"}, nil)
	}
	return globalContext{
		read: read, entries: entries,
		age:    of("global_context_age_seconds", "How long ago a GlobalContextEntry was last read, or told to have changed."),
		usable: of("global_context_usable", "1 for each GlobalContextEntry whose value can be relied on, else 0."),
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
