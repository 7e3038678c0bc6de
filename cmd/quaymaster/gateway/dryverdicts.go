package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/recall"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/dryrun"
)

// MaxDryVerdicts bounds how long a start may wait for the verdicts on running workloads.
const MaxDryVerdicts = time.Hour

// dryVerdicts reports the verdicts on running workloads that differ from those of the previous
// version, in its reports or its decision log. It ends at its deadline. Its results do not affect
// the readiness of the gateway.
func (g *assembly) dryVerdicts(ctx context.Context, key []byte) {
	if g.options.DryVerdicts == 0 {
		return
	}
	if g.cluster == nil {
		g.log.Warn("dry verdicts: without a cluster nothing runs that could be looked at")
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, g.options.DryVerdicts)
	defer cancel()
	known := dryrun.NewComparison()
	from, err := g.saidBefore(ctx, known)
	gateway.Warn(g.log, "dry verdicts: what was said before cannot be read")(err)
	summary, err := g.dryRound(ctx, key, known)
	list := known.Changes()
	denied := 0
	for _, change := range list {
		if change.Denies {
			denied++
		}
	}
	g.metrics.SetDryVerdicts(denied, len(list)-denied)
	line := fmt.Sprintf("dry verdicts: %d objects looked at in %s, beside what %s of %d workloads: %d verdicts differ, of which %d deny now",
		known.Objects(), time.Since(began).Round(time.Millisecond), from, known.Known(), len(list), denied)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		line += fmt.Sprintf("; the time of %s was up before everything was looked at", g.options.DryVerdicts)
	case err != nil:
		line += "; not everything was looked at: " + err.Error()
	case len(summary.Refused) > 0:
		line += fmt.Sprintf("; %d kinds may not be listed", len(summary.Refused))
	}
	g.log.Info("dry verdicts", slog.Int("objects", known.Objects()), slog.Int("before", known.Known()), slog.Int("differ", len(list)),
		slog.Int("deny", denied), slog.Bool("whole", err == nil))
	if g.options.Verdicts == nil {
		return
	}
	if _, err := io.WriteString(g.options.Verdicts, line+"\n"); err == nil {
		err = known.Write(g.options.Verdicts)
		gateway.Warn(g.log, "dry verdicts: they cannot be written")(err)
	}
}

// dryRound evaluates all objects once.
func (g *assembly) dryRound(ctx context.Context, key []byte, into report.Sink) (scan.Summary, error) {
	l, end, err := g.look(key)
	defer end()
	if err != nil {
		return scan.Summary{}, err
	}
	decider, closed, err := g.decider(l)(g.state)
	if err != nil {
		return scan.Summary{}, err
	}
	defer closed()
	scanner, err := scan.New(scan.Options{
		Cluster: l.lister, Decider: decider, State: g.scanned, Namespaces: g.around.Namespaces, Observer: quiet{}, Sinks: []report.Sink{into},
		Excluded: append(g.outside(), g.configuration.Scan.ExcludedNamespaces...),
	})
	if err != nil {
		return scan.Summary{}, err
	}
	summary, err := scanner.Round(ctx)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return summary, err
}

// saidBefore reads the previous verdicts: from reports in the cluster, else from the decision log
// of this replica. It returns the source.
func (g *assembly) saidBefore(ctx context.Context, into *dryrun.Comparison) (string, error) {
	failed := readAllReports(ctx, g.cluster.Client.Dynamic, func(results []result.Result) { into.Before(results...) })
	if into.Known() > 0 {
		return "reports say", failed
	}
	folder := g.records.DecisionFolder()
	if folder == "" {
		return "nobody says (there are neither reports nor a decision log)", failed
	}
	err := recall.Decided(recall.Source{Folder: folder}, g.documents.ByID(), func(d report.Decided) error {
		into.Before(result.Of(d)...)
		return ctx.Err()
	})
	return "the decision log says", errors.Join(failed, err)
}

// readAllReports reads the gateway's reports of every served API.
func readAllReports(ctx context.Context, client dynamic.Interface, do func([]result.Result)) error {
	var failed error
	for _, api := range policyreport.APIs() {
		store, err := reports.NewStore(client, api)
		if err != nil {
			return err
		}
		for _, namespace := range []string{reports.Everywhere, ""} {
			err := store.Each(ctx, namespace, policyreport.ManagedByLabel+"="+policyreport.ManagedBy, func(text []byte) error {
				results, err := policyreport.Results(text)
				if err == nil {
					do(results)
				}
				return err
			})
			if err != nil && !errors.Is(err, publish.ErrNotServed) {
				failed = errors.Join(failed, err)
			}
		}
	}
	return failed
}

// quiet is a scan.Observer that ignores all events.
type quiet struct{}

// Began implements scan.Observer.
func (quiet) Began(scan.Position) {}

// Ended implements scan.Observer.
func (quiet) Ended(scan.Summary, error) {}

// Looked implements scan.Observer.
func (quiet) Looked(scan.Kind, int, int64) {}

// Refused implements scan.Observer.
func (quiet) Refused(scan.Kind, error) {}

// Failed implements scan.Observer.
func (quiet) Failed(error) {}
