package reporting

import (
	"context"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
)

// restoredAge bounds the age of log entries that are added to reports again. It is longer than
// the retries of a write, which package publish bounds.
const restoredAge = time.Hour

// restoreReports returns a function that adds the last hour of this replica's decision log to
// reports: a killed replica may not have written them. The end of the log is determined now,
// because new decisions follow soon.
func (r *Records) restoreReports() func(context.Context) {
	folder := r.DecisionFolder()
	if folder == "" {
		return func(context.Context) {}
	}
	since := time.Now().Add(-restoredAge)
	last, err := recall.Last(folder)
	if err != nil || last == 0 {
		return func(context.Context) { r.notRestored()(err) }
	}
	return func(ctx context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-r.options.Open: // the policies are loaded
		}
		r.restoreReport(ctx, recall.Source{Folder: folder, Through: last, Since: since})
	}
}

func (r *Records) restoreReport(ctx context.Context, from recall.Source) {
	told := 0
	err := recall.Decided(from, r.options.Documents.ByID(), func(d report.Decided) error {
		told++
		return r.Reports.Put(ctx, d)
	})
	r.notRestored()(err)
	if told == 0 {
		return
	}
	r.options.Log.Info("reports are told what the decision log knows", slog.String("folder", from.Folder), slog.Int("decisions", told))
}

func (r *Records) notRestored() func(error) {
	return gateway.Warn(r.options.Log, "reports may lack earlier decisions of the decision log")
}
