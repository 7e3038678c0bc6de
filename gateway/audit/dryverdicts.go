package audit

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
	"github.com/quaymaster/quaymaster/policy"
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

// DryVerdicts compares the verdicts on running workloads with those of the previous version.
type DryVerdicts struct {
	// Limit bounds the comparison.
	Limit time.Duration
	// Output receives the differences; may be nil.
	Output io.Writer
	// Open returns the source of the evaluation.
	Open       func() (Source, error)
	View       *scan.View
	Namespaces scan.Namespaces
	// Excluded are patterns for namespaces that are left out.
	Excluded []string
	// Reports reads the previous verdicts in the cluster, and Decisions is the folder of those in
	// the decision log; empty for none.
	Reports   dynamic.Interface
	Decisions string
	// ByID searches the active policies.
	ByID    func(id string) *policy.Policy
	Metrics DryMetrics
	Log     *slog.Logger
}

// DryMetrics counts the differences.
type DryMetrics interface {
	SetDryVerdicts(denied, others int)
}

// Run reports the verdicts on running workloads that differ from those of the previous version, in
// its reports or its decision log. It ends at its limit. Its results do not affect the readiness of
// the gateway.
func (d DryVerdicts) Run(ctx context.Context) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.Limit)
	defer cancel()
	known := dryrun.NewComparison()
	from, err := d.previous(ctx, known)
	gateway.Warn(d.Log, "dry verdicts: the previous verdicts cannot be read")(err)
	summary, err := d.round(ctx, known)
	list := known.Changes()
	denied := 0
	for _, change := range list {
		if change.Denies {
			denied++
		}
	}
	d.Metrics.SetDryVerdicts(denied, len(list)-denied)
	line := fmt.Sprintf("dry verdicts: %d objects evaluated in %s, compared with %s of %d workloads; changed verdicts: %d, new denials: %d",
		known.Objects(), time.Since(began).Round(time.Millisecond), from, known.Known(), len(list), denied)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		line += fmt.Sprintf("; the limit of %s was reached before everything was evaluated", d.Limit)
	case err != nil:
		line += "; not everything was evaluated: " + err.Error()
	case len(summary.Refused) > 0:
		line += fmt.Sprintf("; %d kinds may not be listed", len(summary.Refused))
	}
	d.Log.Info("dry verdicts", slog.Int("objects", known.Objects()), slog.Int("before", known.Known()), slog.Int("differ", len(list)),
		slog.Int("deny", denied), slog.Bool("whole", err == nil))
	if d.Output == nil {
		return
	}
	_, err = io.WriteString(d.Output, line+"\n")
	if err == nil {
		err = known.Write(d.Output)
	}
	gateway.Warn(d.Log, "dry verdicts: they cannot be written")(err)
}

// round evaluates all objects once.
func (d DryVerdicts) round(ctx context.Context, into report.Sink) (scan.Summary, error) {
	source, err := d.Open()
	if err != nil {
		source.Close()
		return scan.Summary{}, err
	}
	defer source.Close()
	scanner, err := scan.New(scan.Options{
		Cluster: source.Lister, Decider: source.Decider, State: d.View, Namespaces: d.Namespaces, Observer: quiet{}, Sinks: []report.Sink{into},
		Excluded: d.Excluded,
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

// previous reads the previous verdicts: from reports in the cluster, else from the decision log
// of this replica. It returns the source.
func (d DryVerdicts) previous(ctx context.Context, into *dryrun.Comparison) (string, error) {
	failed := readAllReports(ctx, d.Reports, func(results []result.Result) { into.Before(results...) })
	if into.Known() > 0 {
		return "the reports", failed
	}
	if d.Decisions == "" {
		return "no verdicts (there are neither reports nor a decision log)", failed
	}
	err := recall.Decided(recall.Source{Folder: d.Decisions}, d.ByID, func(decided report.Decided) error {
		into.Before(result.Of(decided)...)
		return ctx.Err()
	})
	return "the decision log", errors.Join(failed, err)
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
