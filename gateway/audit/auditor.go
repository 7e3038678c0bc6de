package audit

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster/listing"
	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/scan"
	changes "github.com/quaymaster/quaymaster/scan/follow"
)

// Config holds the dependencies of an Auditor.
type Config struct {
	// Open waits until objects can be evaluated, and returns the source of a scan; false if the
	// context ended first.
	Open func(context.Context) (Source, bool, error)
	// View is the state without the policies that a scan leaves out.
	View       *scan.View
	Namespaces scan.Namespaces
	Sinks      Sinks
	// Interval is the time from the start of one round to that of the next.
	Interval time.Duration
	// Excluded are patterns for namespaces that are left out.
	Excluded []string
	// Follow evaluates objects within seconds of a change.
	Follow bool
	// Policies reports changes of policies, mirrors and trusted roots.
	Policies gateway.Changing
	// Again receives a value when a scan is needed soon.
	Again <-chan struct{}
	// Busy reports whether a scan must pause.
	Busy func() bool
	// Memory stores the position of a scan.
	Memory  scan.Memory
	Metrics Metrics
	Log     *slog.Logger
}

// Source is the cluster of a scan, and the decider about its objects.
type Source struct {
	Lister  *listing.Lister
	Decider scan.Decider
	// Close ends both; never nil.
	Close func()
}

// Metrics counts events of scans.
type Metrics interface {
	Scanned(objects int)
	ScanEnded(took time.Duration, complete bool, at time.Time)
	Followed(result string, changes int)
}

// Auditor is the component that scans running workloads in rounds, on the leader.
type Auditor struct {
	gateway.OnLeader
	config Config
}

// New makes an Auditor.
func New(c Config) *Auditor { return &Auditor{config: c} }

// Run scans until ctx ends. An error is logged, and the gateway continues without scans.
func (a *Auditor) Run(ctx context.Context) error {
	source, ok, err := a.config.Open(ctx)
	if !ok {
		return nil
	}
	defer source.Close()
	var made scanning
	if err == nil {
		made, err = a.config.scanning(source)
	}
	if err != nil {
		a.config.Log.Error("what runs already is not scanned", slog.String("error", err.Error()))
		return nil
	}
	var following sync.WaitGroup
	defer following.Wait()
	if made.follower != nil {
		following.Go(func() { made.follower.Run(ctx, made.scanner) })
	}
	made.controller.Run(ctx)
	return nil
}

// scanning is a composed scan.
type scanning struct {
	scanner    *scan.Scanner
	controller *scan.Controller
	follower   *changes.Follower // nil where nothing is followed
}

// settleTime is the longest time from a decision to its report, if the API server is available:
// the wait of package publish for more results, and as long again to write.
const settleTime = 30 * time.Second

func (c Config) scanning(from Source) (made scanning, err error) {
	sinks, keeper := c.Sinks.split()
	options := scan.Options{
		Cluster: from.Lister, Decider: from.Decider, State: c.View, Namespaces: c.Namespaces,
		Observer: &scanLog{log: c.Log, metrics: c.Metrics, leftOut: c.View.LeftOut}, Sinks: sinks, Keeper: keeper,
		Passes: c.Sinks.passReceivers(c.Excluded, c.Log), Excluded: c.Excluded, Busy: c.Busy, Mutations: keeper != nil,
	}
	if c.Follow {
		made.follower, err = changes.New(changes.Options{Cluster: from.Lister, Observer: followLog{log: c.Log, metrics: c.Metrics}, Excluded: c.Excluded})
		if err != nil {
			return made, err
		}
		options.Follower = made.follower
	}
	made.scanner, err = scan.New(options)
	if err != nil {
		return made, err
	}
	made.controller, err = scan.NewController(made.scanner, scan.ControllerOptions{
		Policies: c.Policies, Interval: c.Interval, Settled: settleTime, Again: c.Again, Memory: c.Memory,
	})
	return made, err
}

// Sinks receive the results of scans.
type Sinks struct {
	// All are those of every decision, with the ones below.
	All []report.Sink
	// Reports writes reports into Stores; nil where none are written.
	Reports *publish.Publisher
	Stores  []*reports.Store
	// Decisions is the decision log; nil for none.
	Decisions *journal.Journal
	// Inventory is that of the dashboard; nil for none.
	Inventory *inventory.Inventory
}

// split returns the sinks of a scan: the scan waits for reports, all others take as much as they
// can, and the decision log gets only changes.
func (s Sinks) split() ([]report.Sink, scan.Keeper) {
	all := slices.Clone(s.All)
	if s.Decisions != nil {
		all = slices.DeleteFunc(all, func(each report.Sink) bool { return each == report.Sink(s.Decisions) })
		all = append(all, &changed{to: s.Decisions, lost: func() uint64 { return s.Decisions.Stats().Lost }, most: maxChanged})
	}
	if s.Reports == nil {
		return all, nil
	}
	return slices.DeleteFunc(all, func(each report.Sink) bool { return each == report.Sink(s.Reports) }), s.Reports
}
