package reporting

import (
	"context"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
)

// restoredAge bounds the age of log entries that are added to reports again. It is longer than
// the retries of a write, which package publish bounds.
const restoredAge = time.Hour

// Restoration reads the decision log of this replica from before its start.
type Restoration struct {
	folder string // empty: there is no earlier entry
	last   uint64
	err    error
	since  time.Time
	log    *slog.Logger
}

// NewRestoration determines the end of the log now, because new decisions follow soon. folder is
// empty without a log in files.
func NewRestoration(folder string, log *slog.Logger) Restoration {
	r := Restoration{since: time.Now().Add(-restoredAge), log: log}
	if folder == "" {
		return r
	}
	r.last, r.err = recall.Last(folder)
	if r.err == nil && r.last > 0 {
		r.folder = folder
	}
	return r
}

// Reports returns the component that adds the last hour of the log to reports, once open is closed
// and so the policies are loaded: a killed replica may not have written them.
func (r Restoration) Reports(open <-chan struct{}, byID func() func(string) *policy.Policy, put func(context.Context, report.Decided) error) gateway.Component {
	return gateway.Loop(func(ctx context.Context) {
		failed := gateway.Warn(r.log, "reports may lack earlier decisions of the decision log")
		failed(r.err)
		if r.folder == "" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-open:
		}
		decisions := 0
		err := recall.Decided(recall.Source{Folder: r.folder, Through: r.last, Since: r.since}, byID(), func(d report.Decided) error {
			decisions++
			return put(ctx, d)
		})
		failed(err)
		if decisions > 0 {
			r.log.Info("reports are restored from the decision log", slog.String("folder", r.folder), slog.Int("decisions", decisions))
		}
	})
}

// Fill loads the log into an inventory.
func (r Restoration) Fill(known *inventory.Inventory) {
	failed := gateway.Warn(r.log, "the dashboard does not show all that the decision log knows from before")
	failed(r.err)
	if r.folder == "" {
		return
	}
	records, err := recall.Fill(known, recall.Source{Folder: r.folder, Through: r.last})
	failed(err)
	r.log.Info("the dashboard remembers what the decision log knows", slog.Int("decisions", records))
}
