package gateway

import (
	"context"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
)

// recalledAge bounds the age of log entries that are added to reports again. It is longer than
// the retries of a write, which package publish bounds.
const recalledAge = time.Hour

// recallReports returns a function that adds the last hour of this replica's decision log to
// reports: a killed replica may not have written them. The end of the log is determined now,
// because new decisions follow soon.
func (g *assembly) recallReports() func(context.Context) {
	folder := g.decisionFolder()
	if folder == "" {
		return func(context.Context) {}
	}
	since := time.Now().Add(-recalledAge)
	last, err := recall.Last(folder)
	if err != nil || last == 0 {
		return func(context.Context) { g.notRecalled()(err) }
	}
	return func(ctx context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-g.open: // the policies are loaded
		}
		g.recallReport(ctx, recall.Source{Folder: folder, Through: last, Since: since})
	}
}

func (g *assembly) recallReport(ctx context.Context, from recall.Source) {
	told := 0
	err := recall.Decided(from, g.policyByID(), func(d report.Decided) error {
		told++
		return g.reports.Put(ctx, d)
	})
	g.notRecalled()(err)
	if told == 0 {
		return
	}
	g.log.Info("reports are told what the decision log knows", slog.String("folder", from.Folder), slog.Int("decisions", told))
}

func (g *assembly) notRecalled() func(error) {
	return gateway.Warn(g.log, "reports are not told all that the decision log knows from before")
}

// policyByID searches the currently active policies.
func (g *assembly) policyByID() func(id string) *policy.Policy {
	known := map[string]*policy.Policy{}
	if set := g.documents.Active(); set != nil {
		for _, p := range set.Policies() {
			known[p.ID()] = p
		}
	}
	return func(id string) *policy.Policy { return known[id] }
}
