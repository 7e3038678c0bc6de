package dryrun

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/scan"
)

const (
	// MaxFound bounds the workloads of each result that a Result names; others are counted.
	MaxFound = 100
	// maxWorkloads bounds the workloads that are counted individually, at some 100 bytes each.
	maxWorkloads = 100_000
	// maxRefused bounds the kinds that a Result names.
	maxRefused = 20
	// maxMessage bounds the message for a workload, in bytes.
	maxMessage = 300
)

// Options are the dependencies of a Trier. Fields are required unless marked as optional.
type Options struct {
	Cluster    scan.Cluster
	Namespaces scan.Namespaces
	// State provides the exceptions, overrides, trust and mirrors.
	State gate.State
	// Decider creates an evaluator for a state; its second result closes it.
	Decider func(gate.State) (scan.Decider, func(), error)
	// Excluded are patterns for excluded namespaces; may be empty.
	Excluded []string
	// Busy is as in scan.Options; may be nil.
	Busy func() bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Runner performs dry runs of policies. It is safe for concurrent use. Create one with New.
type Runner struct{ options Options }

// New returns an error for a missing required option.
func New(o Options) (*Runner, error) {
	if o.Cluster == nil || o.Namespaces == nil || o.State == nil || o.Decider == nil {
		return nil, errors.New("dry run: the cluster, the namespaces, the state and the decider are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Runner{options: o}, nil
}

// Found is a workload with the reason against it.
type Found struct {
	Kind, Namespace, Name string
	// Image is the image as written; empty for the object itself.
	Image   string
	Code    policy.Code
	Message string
}

// String returns one line, as in "Deployment shop/web: registry.example/web:1 [unsigned] no
// signature was found".
func (f Found) String() string {
	name := f.Name
	if f.Namespace != "" {
		name = f.Namespace + "/" + name
	}
	text := f.Kind + " " + name + ":"
	if f.Image != "" {
		text += " " + f.Image
	}
	if f.Code != "" {
		text += " [" + string(f.Code) + "]"
	}
	if f.Message != "" {
		text += " " + f.Message
	}
	return text
}

// Result is the result of a dry run.
type Result struct {
	// Workloads counts the evaluated workloads of the kinds that the policy matches: controllers,
	// and objects without one.
	Workloads int
	// Stopped would be denied, and the previous version allows them. Unlooked could not be
	// verified. Both are sorted, bounded and counted.
	Stopped, Unlooked           []Found
	StoppedCount, UnlookedCount int
	// Refused are the kinds that cannot be listed.
	Refused []string
	// Whole: all objects were evaluated. Why is the reason if not. If Whole is true, Why is the
	// reason why the policy has no dry run.
	Whole bool
	Why   string
}

// Certain reports whether the dry run shows that the policy denies nothing new.
func (r Result) Certain() bool {
	return r.Whole && r.StoppedCount == 0 && r.UnlookedCount == 0 && len(r.Refused) == 0
}

// Summary returns one line.
func (r Result) Summary() string {
	if r.Whole && r.Why != "" {
		return "it cannot be tried: " + r.Why
	}
	text := fmt.Sprintf("it would stop %d of %d workloads", r.StoppedCount, r.Workloads)
	if !r.Whole {
		text = fmt.Sprintf("it would stop at least %d of the %d workloads that were looked at (%s)", r.StoppedCount, r.Workloads, r.Why)
	}
	if r.UnlookedCount > 0 {
		text += fmt.Sprintf("; %d could not be verified", r.UnlookedCount)
	}
	if len(r.Refused) > 0 {
		text += "; the gateway may not list " + strings.Join(r.Refused, ", ")
	}
	return text
}

// Run reports the workloads that policies, usually one, would deny and the previous versions in
// before, which may be empty, allow. It ends with ctx, and after so many objects where most is
// not zero, and returns the results so far. For policies that are all namespaced, objects in
// other namespaces are neither evaluated nor counted, since the authors of the policies need no
// access to them.
func (t *Runner) Run(ctx context.Context, policies, before []*policy.Policy, most int) (Result, error) {
	for _, p := range policies {
		if p.Unscanned != "" {
			return Result{Whole: true, Why: p.Unscanned}, nil
		}
	}
	now := &alone{of: t.options.State, policies: policies}
	decider, closed, err := t.options.Decider(now)
	if err != nil {
		return Result{}, err
	}
	defer closed()
	former, closedFormer, err := t.options.Decider(&alone{of: t.options.State, policies: before})
	if err != nil {
		return Result{}, err
	}
	defer closedFormer()
	ctx, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	tried := &tally{decider: decider, former: former, within: within(policies), most: most, enough: enough, seen: map[place]sort{}}
	scanner, err := scan.New(scan.Options{
		Cluster: t.options.Cluster, Decider: tried, State: scan.NewView(now), Namespaces: t.options.Namespaces, Observer: tried,
		Excluded: t.options.Excluded, Busy: t.options.Busy, Now: t.options.Now,
	})
	if err != nil {
		return Result{}, err
	}
	_, err = scanner.Round(ctx)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	return tried.result(err), nil
}

// within are the namespaces of the policies; nil if one of them is cluster-scoped.
func within(policies []*policy.Policy) map[string]bool {
	found := map[string]bool{}
	for _, p := range policies {
		if p.Namespace == "" {
			return nil
		}
		found[p.Namespace] = true
	}
	return found
}

// alone is a state with only these policies. It is safe for concurrent use.
type alone struct {
	of       gate.State
	policies []*policy.Policy

	mu    sync.Mutex
	whole *set.Set // the source of set
	set   *set.Set
}

// Snapshot implements gate.State.
func (a *alone) Snapshot(ctx context.Context) (gate.Snapshot, error) {
	now, err := a.of.Snapshot(ctx)
	if err != nil {
		return gate.Snapshot{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set == nil || a.whole != now.Policies {
		a.set, err = set.Join(a.policies, now.Policies.Exceptions(), now.Policies.Overrides())
		if err != nil {
			return gate.Snapshot{}, err
		}
		a.whole = now.Policies
	}
	now.Policies = a.set
	return now, nil
}
