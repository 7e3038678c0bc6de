package suite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/suite/cluster"
	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/policy/suite/result"
	"github.com/quaymaster/quaymaster/policy/suite/signing"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/workload"
)

// Options are the options of a run.
type Options struct {
	// Filter chooses checks; the zero Filter chooses all.
	Filter Filter
	// Registries serve the images of suites that describe none; nil means no registry.
	Registries gate.Registries
}

// Run runs suites concurrently. The report is in the order of the paths, and deterministic.
func Run(ctx context.Context, paths []string, options Options) result.Report {
	r := runner{options: options, kinds: constraint.Known(), prover: sync.OnceValues(publicProver)}
	suites := make([][]result.Suite, len(paths)) // by path
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, path := range paths {
		group.Go(func() error {
			suites[i] = r.run(ctx, path)
			return nil
		})
	}
	_ = group.Wait() // no goroutine returns an error
	report := result.Report{Suites: slices.Concat(suites...)}
	report.Count()
	return report
}

// runner is the state that suites share.
type runner struct {
	options Options
	kinds   []constraint.Resource
	prover  func() (gate.Prover, error)
}

func publicProver() (gate.Prover, error) {
	store, err := trust.New(trust.Options{})
	if err != nil {
		return nil, err
	}
	return engine.NewProver(store.Snapshot())
}

// run runs the suites of a file: each of its documents is one.
func (r *runner) run(ctx context.Context, path string) []result.Suite {
	documents, err := document.Documents(path)
	if err != nil {
		suite := result.Suite{Path: path, Name: path}
		fail(&suite, nil, err)
		return []result.Suite{suite}
	}
	suites := make([]result.Suite, len(documents))
	for i, d := range documents {
		suites[i] = result.Suite{Path: path, Name: path}
		if len(documents) > 1 {
			suites[i].Name = d.Source()
		}
		r.runDocument(ctx, d, &suites[i])
	}
	return suites
}

// runDocument runs one suite. A panic fails this suite alone.
func (r *runner) runDocument(ctx context.Context, d workload.Object, result *result.Suite) {
	started := time.Now()
	var rows []document.Row
	defer func() {
		if p := recover(); p != nil {
			fail(result, rows, fmt.Errorf("internal error: %v", p))
		}
		result.Duration = time.Since(started)
	}()
	s, err := load(d, result.Path, r.kinds)
	if s != nil {
		rows = s.chosen(r.options.Filter)
		if s.Name != "" {
			result.Name = s.Name
		}
		defer func() { result.Warnings = slices.Concat(s.unknown.Fields, s.warnings) }()
	}
	if err != nil {
		fail(result, rows, err)
		return
	}
	if len(rows) == 0 {
		return
	}
	compiled, closing, err := r.prepare(s)
	if err != nil {
		fail(result, rows, err)
		return
	}
	defer closing()
	for i := range rows {
		result.Checks = append(result.Checks, compiled.checks(ctx, &rows[i], r.options.Filter)...)
	}
	result.Checks = append(result.Checks, s.unread(r.options.Filter)...)
}

// unread names the policies that could not be read, each as a failure.
func (s *loaded) unread(filter Filter) []result.Check {
	var checks []result.Check
	for _, left := range s.apart {
		if name := left.Object.Name(); name == "" || matches(filter.Policy, name) {
			c := result.Check{Policy: name, Resource: left.Object.Source(), Message: left.why}
			checks = append(checks, c.As(result.Failed, unreadReason))
		}
	}
	return checks
}

// chosen returns the rows that a filter chooses.
func (s *loaded) chosen(filter Filter) []document.Row {
	var rows []document.Row
	for i := range s.Results {
		if filter.row(&s.Results[i]) {
			rows = append(rows, s.Results[i])
		}
	}
	return rows
}

// fail fails a suite with all of its checks, at least one.
func fail(r *result.Suite, rows []document.Row, err error) {
	r.Error, r.Checks = err.Error(), nil
	for i := range rows {
		row := &rows[i]
		blank := result.Check{Policy: row.Policy, Rule: row.Rule, Want: row.Result}
		r.Checks = append(r.Checks, every(blank.As(result.Failed, "the suite could not be run"), row, Filter{})...)
	}
	if len(r.Checks) == 0 {
		r.Checks = []result.Check{result.Check{}.As(result.Failed, "the suite could not be run")}
	}
}

// prepare compiles a suite; the caller closes it.
func (r *runner) prepare(s *loaded) (t *compiledSuite, closing func(), err error) {
	if len(s.Images) > 0 {
		return staged(s)
	}
	prover, err := r.prover()
	if err != nil {
		return nil, nil, err
	}
	registries := r.options.Registries
	if registries == nil {
		registries = none{}
	}
	t, err = compile(s, backing{registries: registries, prover: prover})
	return t, func() {}, err
}

// staged opens the compiled suite with images.
func staged(s *loaded) (*compiledSuite, func(), error) {
	stage, err := signing.New(signing.Config{Images: s.Images, Keys: s.Keys, Folder: s.folder, TrustedRoot: s.TrustedRoot})
	if err != nil {
		return nil, nil, err
	}
	s.cluster.Swap(stage.Swap)
	prover, err := stage.Prover(cluster.Keys{Cluster: s.cluster})
	if err == nil {
		var t *compiledSuite
		t, err = compile(s, backing{registries: stage, prover: prover, swap: stage.Swap})
		if err == nil {
			if err = stage.Unused(); err == nil {
				return t, stage.Close, nil
			}
		}
	}
	stage.Close()
	return nil, nil, err
}

// none has no registries.
type none struct{}

// Open implements gate.Registries.
func (none) Open(_ context.Context, _ gate.Access, repository image.Repository) (gate.Session, error) {
	return nil, &image.Error{
		Kind: image.Unavailable, Op: "open", On: repository.String(),
		Err: errors.New("a suite asks no registry: describe the image under images"),
	}
}
