package suite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/suite/signing"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Options are the options of a run.
type Options struct {
	// Filter chooses checks; the zero Filter chooses all.
	Filter Filter
	// Registries serve the images of suites that describe none; nil means no registry.
	Registries gate.Registries
}

// Report is the result of suites, in their order.
type Report struct {
	Suites []Result `json:"suites"`
	Passed int      `json:"passed"`
	Failed int      `json:"failed"`
	// Skipped counts the checks of rules that do not apply to the object.
	Skipped int `json:"skipped"`
}

// Result is the result of one suite.
type Result struct {
	Name   string  `json:"name"`
	Path   string  `json:"path"`
	Checks []Check `json:"checks"`
	// Error is the reason why the suite could not be run; all of its checks then fail.
	Error string `json:"error,omitempty"`
	// Duration is how long it took.
	Duration time.Duration `json:"-"`
}

// Run runs suites concurrently. The report is in the order of the paths, and deterministic.
func Run(ctx context.Context, paths []string, options Options) Report {
	r := runner{options: options, kinds: constraint.Known(), prover: sync.OnceValues(publicProver)}
	report := Report{Suites: make([]Result, len(paths))}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, path := range paths {
		group.Go(func() error {
			report.Suites[i] = r.run(ctx, path)
			return nil
		})
	}
	_ = group.Wait() // no goroutine returns an error
	for _, s := range report.Suites {
		for _, c := range s.Checks {
			switch c.Outcome {
			case Passed:
				report.Passed++
			case Skipped:
				report.Skipped++
			default:
				report.Failed++
			}
		}
	}
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

// run runs one suite. A panic fails this suite alone.
func (r *runner) run(ctx context.Context, path string) (result Result) {
	started := time.Now()
	result.Path, result.Name = path, path
	var rows []row
	defer func() {
		if p := recover(); p != nil {
			result.fail(rows, fmt.Errorf("internal error: %v", p))
		}
		result.Duration = time.Since(started)
	}()
	s, err := load(path, r.kinds)
	if s != nil {
		rows = s.chosen(r.options.Filter)
		if s.Name != "" {
			result.Name = s.Name
		}
	}
	if err != nil {
		result.fail(rows, err)
		return result
	}
	if len(rows) == 0 {
		return result
	}
	compiled, closing, err := r.prepare(s)
	if err != nil {
		result.fail(rows, err)
		return result
	}
	defer closing()
	for i := range rows {
		result.Checks = append(result.Checks, compiled.checks(ctx, &rows[i], r.options.Filter)...)
	}
	return result
}

// chosen returns the rows that a filter chooses.
func (s *loaded) chosen(filter Filter) []row {
	var rows []row
	for i := range s.Results {
		if filter.row(&s.Results[i]) {
			rows = append(rows, s.Results[i])
		}
	}
	return rows
}

// fail fails a suite with all of its checks, at least one.
func (r *Result) fail(rows []row, err error) {
	r.Error, r.Checks = err.Error(), nil
	for i := range rows {
		row := &rows[i]
		r.Checks = append(r.Checks, failed(Check{Policy: row.Policy, Rule: row.Rule, Want: row.Result}, row, "the suite could not be run", Filter{})...)
	}
	if len(r.Checks) == 0 {
		r.Checks = []Check{Check{}.as(Failed, "the suite could not be run")}
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
	s.cluster.swap(stage.Swap)
	prover, err := stage.Prover(keysOf{s.cluster})
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
