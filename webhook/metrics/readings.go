package metrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Readings are numbers that others keep, asked at each scrape; a nil one is not
// shown. They must be quick. A time that is zero is shown as 0.
type Readings struct {
	// Roles are what this replica does, with commas between, and Lease is by which
	// Lease it leads; a replica has one each.
	Roles, Lease string
	// Ready reports whether this replica can do that, as /readyz says.
	Ready func() bool
	// Leads reports whether it does what one of its Lease does for all.
	Leads func() bool
	// ConfigurationsKept is when this replica last saw that the webhook configurations
	// are as they should be; zero: it does not keep them.
	ConfigurationsKept func() time.Time
	// Working and Waiting are the admission queue's, and WaitingForShare those of the
	// latter whose namespace has its share.
	Working, Waiting, WaitingForShare func() int64
	// RegistriesLimited is at how many accounts of registries questions are held back
	// since they said 429, and RegistriesKept at how many what can wait does not ask.
	RegistriesLimited, RegistriesKept func() int
	// TrustAge is how old the trust material is.
	TrustAge func() time.Duration
	// TrustFailed reports whether the trusted root could not be refreshed when it was
	// last tried.
	TrustFailed func() bool
	// TrustExpires is when the last of each part of the trusted root ends; zero: never.
	TrustExpires func() map[string]time.Time
	// StaleKeys is how many keys could not be looked up again, and UnreadRoots how many
	// TUF repositories that policies name could not be read.
	StaleKeys, UnreadRoots func() int
	// CertificateExpires is when the served certificate ends, and AuthorityExpires when
	// the authority does by which callers know it; zero: there is none.
	CertificateExpires, AuthorityExpires func() time.Time
	// EventsDropped counts Kubernetes Events that were not written.
	EventsDropped func() uint64
	// CredentialsHeld counts pull secrets and service accounts that were what they had
	// been, since the API server did not answer.
	CredentialsHeld func() uint64
	// ReportsPending is how many results wait until a report is written.
	ReportsPending func() int64
	// ScanInterval is the time from one round over what runs already to the next; 0:
	// none are made.
	ScanInterval func() time.Duration
	// GlobalContext says what is known of GlobalContextEntries.
	GlobalContext func() []GlobalContext
	// Overrides are the ImageOverrides that there are.
	Overrides func() []Override
	// OpenNamespaces are those that break glass leaves out, as who leads sees them.
	OpenNamespaces func() []OpenNamespace
}

// Override is one ImageOverride.
type Override struct {
	Name string
	// Effect is a word for what it does.
	Effect string
	// Expires is when it ends; zero for a broken one, which holds until it is mended.
	Expires time.Time
}

// Watch shows readings; once.
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

// watching registers readings, and collects what is wrong.
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

// gauge shows a number.
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

// unix is a time as metrics show it.
func unix(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.Unix())
}
