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
	w.flag("ready", "1 while this replica is ready for its roles, as in /readyz, else 0.", r.Ready, prometheus.Labels{"roles": r.Roles})
	w.flag("leader", "1 while this replica leads, else 0.", r.Leads, prometheus.Labels{"lease": r.Lease})
	w.time("webhook_configurations_kept_timestamp_seconds", "When the leader last found the webhook configurations correct, in Unix time; 0 on other replicas.",
		r.ConfigurationsKept)
	gauge(&w, "queue_working", "Admission requests in evaluation.", r.Working)
	gauge(&w, "queue_waiting", "Admission requests that wait for a slot or for memory.", r.Waiting)
	gauge(&w, "queue_waiting_for_share", "Waiting admission requests of namespaces with an exhausted share while capacity is free.", r.WaitingForShare)
	gauge(&w, "registries_limited", "Registry accounts with limited requests after a 429.", r.RegistriesLimited)
	gauge(&w, "registries_kept", "Registry accounts that scans and impact analyses do not use, to keep the remaining requests for admission.", r.RegistriesKept)
	gauge(&w, "report_results_pending", "Results that are not in a report in the cluster yet.", r.ReportsPending)
	w.seconds("trust_age_seconds", "Age of the trust material in use.", r.TrustAge)
	w.flag("trust_refresh_failed", "1 if the last refresh of the trusted root failed, else 0.", r.TrustFailed, nil)
	gauge(&w, "trust_stale_keys", "Keys that could not be refreshed, and are used in their cached form.", r.StaleKeys)
	gauge(&w, "trust_unread_repositories", "TUF repositories in policies that could not be read at the last attempt.", r.UnreadRoots)
	w.time("certificate_expiry_timestamp_seconds", "Expiry of the serving certificate, in Unix time; 0 without one.", r.CertificateExpires)
	w.time("certificate_authority_expiry_timestamp_seconds",
		"Expiry of the authority that clients verify the serving certificate with, in Unix time; 0 without one.", r.AuthorityExpires)
	w.seconds("scan_interval_seconds", "Interval between scans of running workloads; 0: no scans.", r.ScanInterval)
	w.counter("events_dropped_total", "Kubernetes Events that were not written: rate limited or rejected.", r.EventsDropped)
	w.counter("credentials_held_total", "Uses of cached pull secrets and service accounts because the API server did not respond.", r.CredentialsHeld)
	if r.GlobalContext != nil {
		w.register(newGlobalContext(r.GlobalContext, m.entries))
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
