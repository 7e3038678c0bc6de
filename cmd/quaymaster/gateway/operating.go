package gateway

import (
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// readings are the values of gauges.
func (g *assembly) readings() metrics.Readings {
	readings := metrics.Readings{
		Roles: strings.Join(g.roles(), ","), Ready: allReady(g.checks()),
		Working: g.queue.Working, Waiting: g.queue.Waiting, WaitingForShare: g.queue.WaitingForShare,
		RegistriesLimited: g.engines.limiter.Limited, RegistriesKept: g.engines.limiter.Kept,
		TrustAge: g.trust.Age, TrustExpires: g.trust.Ends, StaleKeys: g.trust.StaleKeys, UnreadRoots: g.documents.UnreadRoots,
		CertificateExpires: g.certificates.Expires, AuthorityExpires: g.certificates.AuthorityExpires,
		Overrides: g.overrides,
	}
	if g.configuration.Trust.Refresh {
		readings.TrustFailed = func() bool { return g.trust.Store.Status().Err != nil }
	}
	if g.documents.Globals != nil {
		readings.GlobalContext = g.documents.Globals.Known
	}
	if g.records.Reports != nil {
		readings.ReportsPending = g.records.Reports.Pending
	}
	if g.cluster != nil {
		g.readCluster(&readings)
	}
	return readings
}

// readCluster adds the readings of a gateway in a cluster.
func (g *assembly) readCluster(readings *metrics.Readings) {
	if g.records.BreakGlass != nil {
		readings.OpenNamespaces = g.records.OpenNamespaces
	}
	readings.CredentialsHeld = g.cluster.Held.Served
	leads := g.cluster.Leader.Leads
	readings.Lease, readings.Leads = g.configuration.Lease(), leads
	if g.cluster.Events != nil {
		readings.EventsDropped = g.cluster.Events.Dropped
	}
	if g.configuration.Has(config.RoleAdmission) && !g.configuration.Webhooks.Disabled {
		readings.ConfigurationsKept = func() time.Time {
			if !leads() {
				return time.Time{}
			}
			return g.webhooks.Reconciled()
		}
	}
	readings.ScanInterval = func() time.Duration {
		if g.configuration.Scan.Disabled || !g.configuration.Has(config.RoleScan) {
			return 0
		}
		return time.Duration(g.configuration.Scan.Interval)
	}
}

// allReady evaluates the checks of /readyz, except a drain.
func allReady(checks []webhook.Check) func() bool {
	return func() bool {
		return !slices.ContainsFunc(checks, func(c webhook.Check) bool { return c.Ready() != nil })
	}
}

// roles are those of this process.
func (g *assembly) roles() []string {
	if g.configuration.Roles == nil {
		return config.Roles()
	}
	return g.configuration.Roles
}

// overrides are the active ImageOverrides; none until they are loaded.
func (g *assembly) overrides() []metrics.Override {
	set := g.documents.Active()
	if set == nil {
		return nil
	}
	var list []metrics.Override
	for _, o := range set.Overrides() {
		effect := "allow"
		if o.Effect == policy.OverrideDeny || o.Broken != nil {
			effect = "deny"
		}
		list = append(list, metrics.Override{Name: o.Name, Effect: effect, Expires: o.Expires})
	}
	return list
}
