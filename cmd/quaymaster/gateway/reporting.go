package gateway

import (
	"context"
	"log/slog"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/certificates"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// recordOptions are the dependencies of records.
type recordOptions struct {
	configuration config.Configuration
	version       string
	// replica is the name of this process; writer is that of the decision log's writer, never empty.
	replica, writer string
	cluster         *lookups.Cluster // nil when running standalone
	certificates    *certificates.Certificates
	documents       *documents.Documents
	scanned         *scan.View      // the policies that scans evaluate
	scanAgain       chan<- struct{} // gets a value when a scan is needed soon
	open            <-chan struct{} // closed once the endpoints are active
	dashboard       func(address string)
	group           *gateway.Group
	metrics         *metrics.Metrics
	log             *slog.Logger
}

// records are the components that keep decisions.
type records struct {
	options   recordOptions
	sinks     reporting.Sinks    // of all decisions
	decisions *journal.Journal   // nil where no decision log is kept
	reports   *publish.Publisher // nil where none are written, into stores
	stores    []*reports.Store
	inventory *inventory.Inventory // nil where no dashboard is kept, which pages show
	pages     *ui.Handler
	// leader is the dashboard of the leader; nil where each replica shows its own.
	leader     *reporting.LeaderView
	breakGlass *breakglass.Keeper // of open namespaces; nil where there can be none
}

// newRecords adds the components that keep the decisions of a process with its roles.
func newRecords(ctx context.Context, o recordOptions) (*records, error) {
	r := &records{options: o}
	if o.configuration.Has(config.RoleAdmission, config.RoleScan) { // processes with decisions
		if err := r.openDecisionLog(ctx); err != nil {
			return nil, err
		}
	}
	if o.configuration.Has(config.RoleAdmission) {
		return r, r.openBreakGlass()
	}
	return r, nil
}

// publish adds the components that publish the decisions of a process with its role: reports and
// the dashboard.
func (r *records) publish() error {
	if !r.options.configuration.Has(config.RoleReport) {
		return nil
	}
	if err := r.openReports(); err != nil {
		return err
	}
	return r.openDashboard()
}
