package gateway

import (
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// readings are the values of gauges.
func (g *assembly) readings(checks []webhook.Check) metrics.Readings {
	readings := metrics.Readings{
		Roles: strings.Join(rolesOf(g.configuration), ","), Ready: endpoints.AllReady(checks),
		Working: g.serving.queue.Working, Waiting: g.serving.queue.Waiting, WaitingForShare: g.serving.queue.WaitingForShare,
		RegistriesLimited: g.workloads.engines.limiter.Limited, RegistriesKept: g.workloads.engines.limiter.Kept,
		TrustAge: g.trust.Age, TrustExpires: g.trust.Ends, StaleKeys: g.trust.StaleKeys, UnreadRoots: g.documents.UnreadRoots,
		CertificateExpires: g.certificates.Expires, AuthorityExpires: g.certificates.AuthorityExpires,
		Overrides: g.documents.Overrides,
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
	if g.around.Cluster != nil {
		g.readCluster(&readings)
	}
	return readings
}

// readCluster adds the readings of a gateway in a cluster.
func (g *assembly) readCluster(readings *metrics.Readings) {
	if g.records.BreakGlass != nil {
		readings.OpenNamespaces = g.records.OpenNamespaces
	}
	readings.CredentialsHeld = g.around.Cluster.Held.Served
	leads := g.around.Cluster.Leader.Leads
	readings.Lease, readings.Leads = g.configuration.Lease(), leads
	if g.around.Cluster.Events != nil {
		readings.EventsDropped = g.around.Cluster.Events.Dropped
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

// rolesOf returns the roles of this process.
func rolesOf(c config.Configuration) []string {
	if c.Roles == nil {
		return config.Roles()
	}
	return c.Roles
}
