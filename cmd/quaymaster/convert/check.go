package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/policy/convert/equality/suiteobjects"
	"github.com/quaymaster/quaymaster/policy/convert/review"
	"github.com/quaymaster/quaymaster/policy/suite"
	"github.com/quaymaster/quaymaster/workload"
)

// checkFlags compare policies with their results.
type checkFlags struct {
	isSet         bool
	results       []string
	manifests     []string
	suites        []string
	seed          uint64
	objects       int
	format        string
	cluster       clusterFlags
	hasCheckFlags func() (name string)
}

func (f *checkFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.isSet, "check", false, "compare the policies with their results, of --with, --to native or --to cel, on generated objects")
	flags.StringArrayVar(&f.results, "with", nil, "`file` or folder of the results, with --check; may be repeated")
	flags.StringArrayVarP(&f.manifests, "filename", "f", nil, "manifest `file` or folder whose objects are evaluated, too, with --check; may be repeated")
	flags.StringArrayVar(&f.suites, "suite", nil,
		"`folder` or file of test suites ("+suite.FileName+") whose objects and values are evaluated, too, with --check; may be repeated")
	flags.Uint64Var(&f.seed, "seed", 1, "`number` that selects the generated objects, with --check: the same one makes the same objects")
	flags.IntVar(&f.objects, "objects", equality.DefaultObjects, "`number` of generated objects for each policy, with --check")
	flags.StringVar(&f.format, "report", output.Text, "`format` of the report of --check: text, json, yaml or markdown; or a file "+markdownFile+
		" for a page in Markdown, also with --to cel alone")
	f.cluster.register(cmd)
	usage.Complete(cmd, "report", append(output.DocumentFormats(), markdownFormat)...)
	f.hasCheckFlags = func() string {
		for _, name := range []string{"with", "filename", "suite", "seed", "objects", "from-cluster"} {
			if flags.Changed(name) {
				return name
			}
		}
		if flags.Changed("report") && !f.isFile() {
			return "report " + f.format
		}
		return ""
	}
}

const (
	markdownFormat = "markdown"
	markdownFile   = "*.md"
)

// isFile reports whether the report is a file.
func (f *checkFlags) isFile() bool { return strings.HasSuffix(f.format, markdownFile[1:]) }

// check refuses flags that have no effect.
func (f *checkFlags) check(to string) error {
	if err := f.cluster.flags.CheckNamed(); err != nil {
		return err
	}
	switch {
	case !f.isSet && f.isFile() && to != toCEL:
		return errors.New("--report FILE is for --to cel, and for --check")
	case !f.isSet:
		if name := f.hasCheckFlags(); name != "" {
			return fmt.Errorf("--%s has no effect without --check", name)
		}
		return nil
	case len(f.results) == 0 && to == toImages:
		return errors.New("--check needs the results: name their files with --with, or convert with --to native or --to cel")
	case len(f.results) > 0 && to != toImages:
		return fmt.Errorf("--with has no effect with --to %s: the policies are converted, and the results are compared", to)
	case f.isFile():
		return nil
	}
	return usage.Choice("--report", f.format, append(output.DocumentFormats(), markdownFormat)...)
}

// read reads the documents of files and folders. In a folder, documents that are no Kubernetes objects, such as
// those of kustomize, are left out.
func read(t command.Terminal, names []string) ([]workload.Object, error) {
	var objects []workload.Object
	for _, name := range names {
		found, err := manifest.ReadSources(name, t.In)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// conversion is the result of a conversion.
type conversion struct {
	text []byte
	// of has the parts that are not converted, of one to CEL.
	of cel.Result
}

// run compares policies with their results.
func (f *checkFlags) run(ctx context.Context, t command.Terminal, sources []string, convert func([]workload.Object) (conversion, error)) error {
	source, err := read(t, sources)
	if err != nil {
		return err
	}
	var made conversion
	var result []workload.Object
	if len(f.results) > 0 {
		result, err = read(t, f.results)
	} else {
		made, err = convert(source)
		if err == nil {
			result, err = resultsOf(made)
		}
	}
	if err != nil {
		return err
	}
	given, err := f.given(t)
	if err != nil {
		return err
	}
	requests, err := f.requests(t)
	if err != nil {
		return err
	}
	policies, beside, err := review.Of(source, result, made.of)
	if err != nil {
		return err
	}
	if len(policies) == 0 {
		return errors.New("no policy in it")
	}
	if err := f.compare(ctx, t, policies, equality.Options{Beside: beside, Given: given, Requests: requests, Objects: f.objects, Seed: f.seed}); err != nil {
		return err
	}
	return f.write(t, policies)
}

// resultsOf reads the documents of a conversion.
func resultsOf(made conversion) ([]workload.Object, error) {
	if len(bytes.TrimSpace(made.text)) == 0 {
		return nil, nil
	}
	return workload.Read(bytes.NewReader(made.text), "the result of the conversion")
}

func (f *checkFlags) given(t command.Terminal) ([]workload.Object, error) {
	var objects []workload.Object
	for _, name := range f.manifests {
		found, err := manifest.Read(name, t.In)
		if err != nil {
			return nil, fmt.Errorf("-f %s: %w", name, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// requests are those of the suites.
func (f *checkFlags) requests(t command.Terminal) ([]equality.Given, error) {
	if len(f.suites) == 0 {
		return nil, nil
	}
	all, notes, err := suiteobjects.Read(f.suites)
	if err != nil {
		return nil, fmt.Errorf("--suite: %w", err)
	}
	for _, note := range notes {
		t.Warn(note)
	}
	return all, nil
}

// compare compares as many policies at a time as there are cores. The objects of a cluster come first, page by page.
func (f *checkFlags) compare(ctx context.Context, t command.Terminal, policies []review.Policy, options equality.Options) error {
	progress := output.NewProgress(t)
	defer progress.Clear()
	var live *liveObjects
	if f.cluster.flags.Use {
		var err error
		live, err = f.cluster.open(t)
		if err != nil {
			return err
		}
		options.Live = live.lookups()
	}
	var mutex sync.Mutex
	done, objects := 0, 0
	show := func(change func()) {
		mutex.Lock()
		defer mutex.Unlock()
		change()
		progress.Print(fmt.Sprintf("compared %d of %d policies, for %d requests", done, len(policies), objects))
	}
	checkers := make([]*equality.Checker, len(policies))
	each(len(policies), func(i int) {
		with, before := options, 0
		with.Progress = func(n int) { show(func() { objects, before = objects+n-before, n }) }
		checkers[i] = checkerOf(ctx, &policies[i], with, len(f.results) > 0)
	})
	if live != nil {
		if err := live.each(ctx, progress, policies, checkers); err != nil {
			return err
		}
	}
	each(len(policies), func(i int) {
		if checkers[i] != nil && policies[i].Error == "" {
			finish(ctx, &policies[i], checkers[i])
		}
		show(func() { done++ })
	})
	return ctx.Err()
}

// each calls a function for each number below n, as many at a time as there are cores.
func each(n int, do func(i int)) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

// checkerOf compiles a policy and its results; nil for one that stays, or cannot be compiled. With results of another
// converter, a policy without one is a fault.
func checkerOf(ctx context.Context, p *review.Policy, with equality.Options, wantsResult bool) *equality.Checker {
	pair, ok := p.Pair()
	switch {
	case !ok && wantsResult:
		p.Error = "it has no result"
		return nil
	case !ok:
		return nil
	}
	with.Source, with.Result = pair.Source, pair.Result
	checker, err := equality.New(ctx, with)
	if err != nil {
		p.Error = err.Error()
		return nil
	}
	return checker
}

func finish(ctx context.Context, p *review.Policy, by *equality.Checker) {
	found, err := by.Finish(ctx)
	p.Report = found
	if err != nil {
		p.Error = err.Error()
	}
}

// write writes the report, and returns the exit status.
func (f *checkFlags) write(t command.Terminal, policies []review.Policy) error {
	var err error
	switch {
	case f.isFile():
		err = writePage(f.format, policies)
		if err == nil {
			err = writeChecked(t, policies)
		}
	case f.format == markdownFormat:
		_, err = t.Out.Write(append(review.Markdown(policies), '\n'))
	case f.format == output.Text:
		err = writeChecked(t, policies)
	default:
		err = output.WriteDocument(t.Out, f.format, map[string]any{"summary": review.Sum(policies), "policies": policies})
	}
	if err != nil {
		return err
	}
	return statusOf(policies)
}

// writePage writes the page in Markdown to a file.
func writePage(name string, policies []review.Policy) error {
	if err := os.WriteFile(name, append(review.Markdown(policies), '\n'), 0o644); err != nil { //nolint:gosec // it is for a review, as the policies are
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// statusOf is the exit status: a policy that cannot be compared or stays is graver than a difference.
func statusOf(policies []review.Policy) error {
	status := command.ExitAllowed
	for i := range policies {
		p := &policies[i]
		switch {
		case p.Error != "" || p.Report == nil && p.State() == review.Staying:
			status = command.ExitUsage
		case p.Report != nil && !p.Equal() && status == command.ExitAllowed:
			status = command.ExitDenied
		}
	}
	if status != command.ExitAllowed {
		return command.Status(status)
	}
	return nil
}
