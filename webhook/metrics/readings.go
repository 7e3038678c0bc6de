package metrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Readings are values that are read at each scrape. A nil function exports no series. The functions
// must be quick. A zero time is exported as 0.
type Readings struct {
	// Roles are this replica's roles, separated by commas, and Lease is the Lease of its leader
	// election; a replica has one each.
	Roles, Lease string
	// Ready reports this replica's readiness, as in /readyz.
	Ready func() bool
	// Leads reports whether this replica holds its Lease.
	Leads func() bool
	// ConfigurationsKept is when this replica last found the webhook configurations correct; zero
	// if it does not manage them.
	ConfigurationsKept func() time.Time
	// Working and Waiting are the numbers of requests in the admission queue. WaitingForShare
	// counts the waiting requests whose namespace has used up its share.
	Working, Waiting, WaitingForShare func() int64
	// RegistriesLimited is the number of registry accounts with limited requests after a 429.
	// RegistriesKept is the number of accounts that background work does not use.
	RegistriesLimited, RegistriesKept func() int
	// TrustAge is the age of the trust material.
	TrustAge func() time.Duration
	// TrustFailed reports whether the last refresh of the trusted root failed.
	TrustFailed func() bool
	// TrustExpires is the latest expiry of each part of the trusted root; zero: never.
	TrustExpires func() map[string]time.Time
	// StaleKeys is the number of keys that could not be refreshed, and UnreadRoots the number of a
	// policy's TUF repositories that could not be read.
	StaleKeys, UnreadRoots func() int
	// CertificateExpires is the expiry of the serving certificate, and AuthorityExpires that of the
	// authority that clients verify it with; zero: there is none.
	CertificateExpires, AuthorityExpires func() time.Time
	// EventsDropped counts Kubernetes Events that were not written.
	EventsDropped func() uint64
	// CredentialsHeld counts the uses of cached pull secrets and service accounts because the API
	// server did not answer.
	CredentialsHeld func() uint64
	// ReportsPending is the number of results that are not in a report yet.
	ReportsPending func() int64
	// ScanInterval is the interval between scans of running workloads; 0: no scans.
	ScanInterval func() time.Duration
	// GlobalContext returns the state of the GlobalContextEntries.
	GlobalContext func() []GlobalContext
	// Overrides returns the ImageOverrides.
	Overrides func() []Override
	// OpenNamespaces returns the namespaces that break glass excludes, as read by the leader.
	OpenNamespaces func() []OpenNamespace
}

// Override is one ImageOverride.
type Override struct {
	Name string
	// Effect is the word for its effect.
	Effect string
	// Expires is the end of the override. Zero means that it is broken, and is in force until it is
	// fixed.
	Expires time.Time
}

// Watch exports readings. It may be called once.
func (m *Metrics) Watch(r Readings) error {
	w := watching{metrics: m}
	w.flag("ready", "1 while this replica can do what it is there for, as /readyz says, else 0.", r.Ready, prometheus.Labels{"roles": r.Roles})
	w.flag("leader", "1 while this replica does what one does for all, else 0.", r.Leads, prometheus.Labels{"lease": r.Lease})
	w.time("webhook_configurations_kept_timestamp_seconds", "When the leader last saw that the webhook configurations are as they should be, in Unix time; 0 for others.", r.ConfigurationsKept)
	gauge(&w, "queue_working", "Admission requests that are being decided.", r.Working)
	gauge(&w, "queue_waiting", "Admission requests that wait for their turn or for memory.", r.Waiting)
	gauge(&w, "queue_waiting_for_share", "Of those that wait, the ones whose namespace has its share at work while there is room for others.", r.WaitingForShare)
	gauge(&w, "registries_limited", "Accounts at registries that said 429, and are left alone or asked by few at once.", r.RegistriesLimited)
	gauge(&w, "registries_kept", "Accounts at registries that scans and trials do not ask, so that what is left is there for admission.", r.RegistriesKept)
	gauge(&w, "report_results_pending", "Results that wait until a report in the cluster is written.", r.ReportsPending)
	w.seconds("trust_age_seconds", "Age of the trust material in use.", r.TrustAge)
	w.flag("trust_refresh_failed", "1 where the trusted root could not be refreshed when it was last tried, else 0.", r.TrustFailed, nil)
	gauge(&w, "trust_stale_keys", "Keys that could not be looked up again, so that what was known of them is used.", r.StaleKeys)
	gauge(&w, "trust_unread_repositories", "TUF repositories named by policies that could not be read when they were last tried.", r.UnreadRoots)
	w.time("certificate_expiry_timestamp_seconds", "When the served certificate ends, in Unix time; 0 without one.", r.CertificateExpires)
	w.time("certificate_authority_expiry_timestamp_seconds", "When the authority ends by which callers know the served certificate, in Unix time; 0 without one.", r.AuthorityExpires)
	w.seconds("scan_interval_seconds", "From one round over what runs already to the next; 0: none are made.", r.ScanInterval)
	w.counter("events_dropped_total", "Kubernetes Events that were not written: too many, or refused.", r.EventsDropped)
	w.counter("credentials_held_total", "Pull secrets and service accounts that were taken to be what they had been, since the API server did not answer.", r.CredentialsHeld)
	if r.GlobalContext != nil {
		w.register(newGlobalContext(r.GlobalContext, m.background.entries))
	}
	if r.TrustExpires != nil {
		w.register(newTrustEnds(r.TrustExpires))
	}
	if r.Overrides != nil {
		w.register(newOverrides(r.Overrides))
	}
	if r.OpenNamespaces != nil {
		w.register(newOpenNamespaces(r.OpenNamespaces))
	}
	if err := errors.Join(w.errs...); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// watching registers readings and collects the errors.
type watching struct {
	metrics *Metrics
	errs    []error
}

func (w *watching) counter(name, help string, read func() uint64) {
	if read != nil {
		w.register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + name, Help: help}, func() float64 { return float64(read()) }))
	}
}

func (w *watching) register(c prometheus.Collector) {
	w.errs = append(w.errs, w.metrics.registry.Register(c))
}

func (w *watching) show(name, help string, value func() float64, labels prometheus.Labels) {
	w.register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help, ConstLabels: labels}, value))
}

// gauge exports a number.
func gauge[T int | int64](w *watching, name, help string, read func() T) {
	if read != nil {
		w.show(name, help, func() float64 { return float64(read()) }, nil)
	}
}

func (w *watching) flag(name, help string, read func() bool, labels prometheus.Labels) {
	if read != nil {
		w.show(name, help, func() float64 {
			if read() {
				return 1
			}
			return 0
		}, labels)
	}
}

func (w *watching) seconds(name, help string, read func() time.Duration) {
	if read != nil {
		w.show(name, help, func() float64 { return read().Seconds() }, nil)
	}
}

func (w *watching) time(name, help string, read func() time.Time) {
	if read != nil {
		w.show(name, help, func() float64 { return unix(read()) }, nil)
	}
}

// unix converts a time to a metric's value.
func unix(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.Unix())
}
