package reporting

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

// Options are the dependencies of Records.
type Options struct {
	Configuration config.Configuration
	Version       string
	// Replica is the name of this process; Writer is that of the decision log's writer, never empty.
	Replica, Writer string
	Cluster         *lookups.Cluster // nil when running standalone
	Certificates    *certificates.Certificates
	Documents       *documents.Documents
	Scanned         *scan.View      // the policies that scans evaluate
	ScanAgain       chan<- struct{} // gets a value when a scan is needed soon
	Open            <-chan struct{} // closed once the endpoints are active
	Dashboard       func(address string)
	Group           *gateway.Group
	Metrics         *metrics.Metrics
	Log             *slog.Logger
}

// Records are the components that keep decisions.
type Records struct {
	options   Options
	Sinks     reporting.Sinks    // of all decisions
	Decisions *journal.Journal   // nil where no decision log is kept
	Reports   *publish.Publisher // nil where none are written, into stores
	Stores    []*reports.Store
	Inventory *inventory.Inventory // nil where no dashboard is kept, which pages show
	Pages     *ui.Handler
	// Leader is the dashboard of the leader; nil where each replica shows its own.
	Leader     *reporting.LeaderView
	BreakGlass *breakglass.Keeper // of open namespaces; nil where there can be none
}

// New adds the components that keep the decisions of a process with its roles.
func New(ctx context.Context, o Options) (*Records, error) {
	r := &Records{options: o}
	if o.Configuration.Has(config.RoleAdmission, config.RoleScan) { // processes with decisions
		if err := r.openDecisionLog(ctx); err != nil {
			return nil, err
		}
	}
	if o.Configuration.Has(config.RoleAdmission) {
		return r, r.openBreakGlass()
	}
	return r, nil
}

// Publish adds the components that publish the decisions of a process with its role: reports and
// the dashboard.
func (r *Records) Publish() error {
	if !r.options.Configuration.Has(config.RoleReport) {
		return nil
	}
	if err := r.openReports(); err != nil {
		return err
	}
	return r.openDashboard()
}
