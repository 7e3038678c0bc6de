package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/scan"
)

const (
	// MaxFound bounds the workloads that a Result names of a sort; others are counted.
	MaxFound = 100
	// maxWorkloads bounds those that are counted apart, at some 100 bytes each.
	maxWorkloads = 100_000
	// maxRefused bounds the kinds that a Result names.
	maxRefused = 20
	// maxMessage bounds what is said of a workload, in bytes.
	maxMessage = 300
)

// Options are what a Trier needs; all are required but for those said to be optional.
type Options struct {
	Cluster    scan.Cluster
	Namespaces scan.Namespaces
	// State says what stands beside a policy: exceptions, overrides, trust and mirrors.
	State gate.State
	// Decider makes what judges by a state; it is closed by its second result.
	Decider func(gate.State) (scan.Decider, func(), error)
	// Excluded are patterns for namespaces of which nobody asks; may be empty.
	Excluded []string
	// Busy is as in scan.Options; may be nil.
	Busy func() bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Trier tries policies. It is safe for concurrent use. Make one with New.
type Trier struct{ options Options }

// New refuses options without what is required.
func New(o Options) (*Trier, error) {
	if o.Cluster == nil || o.Namespaces == nil || o.State == nil || o.Decider == nil {
		return nil, errors.New("trial: the cluster, the namespaces, the state and the decider are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Trier{options: o}, nil
}

// Found is a workload, and what is held against it.
type Found struct {
	Kind, Namespace, Name string
	// Image is the one that it is about, as it is written; empty for the object itself.
	Image   string
	Code    policy.Code
	Message string
}

// String returns a line about it, as in "Deployment shop/web: registry.example/web:1
// [unsigned] no signature was found".
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

// Result is what a trial found.
type Result struct {
	// Workloads are those that were looked at, of the kinds that the policy speaks of:
	// controllers, and what runs for none.
	Workloads int
	// Stopped would be denied, and is not by the version before; Unlooked could not be
	// looked at. Both are sorted and bounded, and counted beside.
	Stopped, Unlooked           []Found
	StoppedCount, UnlookedCount int
	// Refused are the kinds that may not be listed.
	Refused []string
	// Whole: everything was looked at. Why says why not, or that the policy cannot be
	// tried at all; then Whole is true.
	Whole bool
	Why   string
}

// Certain reports whether the trial says that the policy stops nothing.
func (r Result) Certain() bool {
	return r.Whole && r.StoppedCount == 0 && r.UnlookedCount == 0 && len(r.Refused) == 0
}

// Summary says it in a line.
func (r Result) Summary() string {
	if r.Whole && r.Why != "" {
		return "it cannot be tried: " + r.Why
	}
	text := fmt.Sprintf("it would stop %d of %d workloads", r.StoppedCount, r.Workloads)
	if !r.Whole {
		text = fmt.Sprintf("it would stop at least %d of the %d workloads that were looked at (%s)", r.StoppedCount, r.Workloads, r.Why)
	}
	if r.UnlookedCount > 0 {
		text += fmt.Sprintf("; %d could not be looked at", r.UnlookedCount)
	}
	if len(r.Refused) > 0 {
		text += "; the gateway may not list " + strings.Join(r.Refused, ", ")
	}
	return text
}

// Try says what policies would stop, most often one, that those before, as another version
// of it, let run; there may be none. It ends with ctx, and after so many objects where most is not
// zero: what was found until then is told. Of policies that are all of namespaces, nothing
// outside of those is judged or counted: who writes them need not know what runs there.
func (t *Trier) Try(ctx context.Context, policies, before []*policy.Policy, most int) (Result, error) {
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

// within are the namespaces outside of which none of the policies holds; nil: there is one
// of the cluster.
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

// alone is a state in which there are only these policies. It is safe for concurrent use.
type alone struct {
	of       gate.State
	policies []*policy.Policy

	mu    sync.Mutex
	whole *policy.Set // of which set was made
	set   *policy.Set
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
		if a.set, err = beside(now.Policies, a.policies); err != nil {
			return gate.Snapshot{}, err
		}
		a.whole = now.Policies
	}
	now.Policies = a.set
	return now, nil
}

// beside is a set of policies with the exceptions and overrides of another one.
func beside(whole *policy.Set, policies []*policy.Policy) (*policy.Set, error) {
	set, err := policy.NewSet(policies...)
	if err != nil {
		return nil, err
	}
	if set, err = set.With(whole.Exceptions()...); err != nil {
		return nil, err
	}
	return set.WithOverrides(whole.Overrides()...)
}
