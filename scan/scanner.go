package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

// Decider evaluates objects in batches; *gate.Gate implements it. Its state should be a View.
type Decider interface {
	DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome
}

// Options are the dependencies of a Scanner. Fields are required unless marked as optional.
type Options struct {
	Cluster    Cluster
	Decider    Decider
	State      *View
	Namespaces Namespaces
	Observer   Observer
	// Sinks receive the decisions; may be empty. The Keeper receives them, too, with
	// backpressure; may be nil.
	Sinks  []report.Sink
	Keeper Keeper
	// Passes receives the end of each pass. It may be nil, and so may the Follower.
	Passes   PassReceiver
	Follower Follower
	// Excluded are patterns for excluded namespaces; may be empty.
	Excluded []string
	// Mutations: the outcomes for the Keeper have the results of mutation rules, which change nothing.
	Mutations bool
	// Busy reports whether admission requests are queued, so that the next page should wait; nil
	// means never.
	Busy func() bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Scanner evaluates existing objects. Create one with New. It runs one round at a time; Look is
// safe for concurrent use in parallel with it.
type Scanner struct {
	options Options
	follows bool
	telling sync.Mutex // held while sinks are called
}

// New creates a Scanner, and returns an error for a missing required option.
func New(o Options) (*Scanner, error) {
	if o.Cluster == nil || o.Decider == nil || o.State == nil || o.Namespaces == nil || o.Observer == nil {
		return nil, errors.New("scan: the cluster, the decider, the state, the namespaces and the observer are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Busy == nil {
		o.Busy = func() bool { return false }
	}
	follows := o.Follower != nil
	if !follows {
		o.Follower = unfollowed{}
	}
	return &Scanner{options: o, follows: follows}, nil
}

// Round evaluates all objects once.
func (s *Scanner) Round(ctx context.Context) (Summary, error) {
	now, err := s.options.State.Snapshot(ctx)
	if err != nil {
		return Summary{}, err
	}
	return s.from(ctx, Position{Began: s.options.Now(), Basis: basisOf(now)}, func(Position) {})
}

// Look evaluates one object of a kind, as of the time when it was requested.
func (s *Scanner) Look(ctx context.Context, kind Kind, object workload.Object, asked time.Time) error {
	r := &round{Scanner: s, labels: map[string]labels{}}
	err := r.look(ctx, []workload.Object{object}, NewPass(kind, asked), asked)
	s.options.Observer.Looked(kind, 1, 0)
	return err
}

// from continues a round, and reports the position after each page.
func (s *Scanner) from(ctx context.Context, p Position, reached func(Position)) (Summary, error) {
	r := &round{Scanner: s, position: p, reached: reached, labels: map[string]labels{}}
	r.summary.Began, r.summary.Resumed = s.options.Now(), p.Kind != (Kind{})
	s.options.Observer.Began(p)
	err := r.run(ctx)
	r.summary.Duration = s.options.Now().Sub(r.summary.Began)
	s.options.Observer.Ended(r.summary, err)
	return r.summary, err
}

// round is a round in progress.
type round struct {
	*Scanner
	position Position
	reached  func(Position)
	summary  Summary
	labels   map[string]labels // of the namespaces of one page
}

type labels struct {
	are   map[string]string
	known bool
}

func (r *round) run(ctx context.Context) error {
	now, err := r.options.State.Snapshot(ctx)
	if err != nil {
		return err
	}
	if r.position.GivenUp {
		r.options.Follower.Refused(r.position.Kind)
		r.summary.Refused = append(r.summary.Refused, RefusedKind{Kind: r.position.Kind, Err: errGivenUp})
	}
	var served []Kind
	err = r.patiently(ctx, func() (err error) {
		served, err = r.options.Cluster.Kinds(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("find out which kinds there are: %w", err)
	}
	kinds := kindsOf(now.Policies, served, r.options.Mutations)
	r.options.Follower.Kinds(kinds)
	for _, kind := range kinds {
		if !r.position.covers(kind) || r.position.isPast(kind) {
			continue
		}
		if kind != r.position.Kind {
			r.position.Kind, r.position.Continue, r.position.GivenUp = kind, "", false
			r.reached(r.position)
		}
		err := r.pass(ctx, kind)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, ErrRefused) {
			r.refused(kind, err)
		} else if err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		r.summary.Kinds++
	}
	r.position.Ended = r.options.Now()
	r.position.Kind, r.position.Continue, r.position.GivenUp = Kind{}, "", false
	r.reached(r.position)
	return nil
}

// errGivenUp is the reason for skipping a kind in a round.
var errGivenUp = errors.New("the maximum number of attempts failed")

func (r *round) refused(kind Kind, err error) {
	r.options.Follower.Refused(kind)
	r.options.Observer.Refused(kind, err)
	if len(r.summary.Refused) < maxRefused {
		r.summary.Refused = append(r.summary.Refused, RefusedKind{Kind: kind, Err: err})
	}
}

// pass evaluates the objects of a kind, from the position on.
func (r *round) pass(ctx context.Context, kind Kind) error {
	pass := NewPass(kind, r.options.Now())
	whole := r.position.Continue == ""
	followed := false
	for restarts := 0; ; {
		r.yield(ctx)
		asked := r.options.Now()
		page, err := r.page(ctx, kind)
		var expired *ExpiredError
		switch {
		case errors.As(err, &expired) && expired.Next != "" && expired.Next != r.position.Continue:
			// Objects that were created before that position in the meantime are newer than the
			// pass. A Follower without a watch does not receive them, so the kind stays behind.
			r.position.Continue, followed = expired.Next, true
			continue
		case errors.As(err, &expired) && restarts < maxRestarts:
			restarts++
			pass = NewPass(kind, r.options.Now())
			r.position.Continue, whole, followed = "", true, false
			continue
		case err != nil:
			return err
		}
		if !followed { // from now on, since the rest of the list may take long
			r.options.Follower.Listed(kind, page.Version)
			followed = true
		}
		if err := r.look(ctx, page.Objects, pass, asked); err != nil {
			return err
		}
		for _, err := range page.Unreadable {
			r.summary.Unreadable++
			whole = false
			r.options.Observer.Failed(fmt.Errorf("an object of %s cannot be read: %w", kind, err))
		}
		r.options.Observer.Looked(kind, len(page.Objects), page.Remaining)
		r.position.Continue = page.Continue
		if page.Continue == "" {
			break
		}
		r.reached(r.position)
	}
	if whole && len(pass.seen) < maxSeen && r.options.Passes != nil {
		r.options.Passes.Passed(ctx, *pass)
	}
	return nil
}

// page lists one page with retries.
func (r *round) page(ctx context.Context, kind Kind) (Page, error) {
	var page Page
	err := r.patiently(ctx, func() (err error) {
		page, err = r.options.Cluster.List(ctx, kind, r.position.Continue, PageSize)
		return err
	})
	return page, err
}

// patiently retries errors that may be temporary.
func (r *round) patiently(ctx context.Context, do func() error) error {
	pause := firstPause
	for tries := 1; ; tries++ {
		err := do()
		var expired *ExpiredError
		if err == nil || ctx.Err() != nil || tries == maxTries || errors.Is(err, ErrRefused) || errors.As(err, &expired) {
			return err
		}
		r.options.Observer.Failed(err)
		wait(ctx, pause)
		pause = min(2*pause, longestPause)
	}
}

// yield waits while admission is busy, for a bounded time.
func (r *round) yield(ctx context.Context) {
	for waited := time.Duration(0); r.options.Busy() && waited < longestBusy && ctx.Err() == nil; waited += busyPause {
		wait(ctx, busyPause)
	}
}

// wait waits, and reports whether it finished before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// look evaluates the objects of a page, and passes the outcomes on with the time of the request,
// so that admission decisions on later states are newer.
func (r *round) look(ctx context.Context, objects []workload.Object, pass *Pass, asked time.Time) error {
	kind := pass.Kind
	clear(r.labels)
	requests := make([]gate.Request, 0, len(objects))
	for _, object := range objects {
		if r.options.Passes != nil && len(pass.seen) < maxSeen {
			pass.seen[uidOf(object)] = struct{}{}
		}
		if r.excluded(kind, object) {
			r.summary.Excluded++
			continue
		}
		requests = append(requests, r.request(ctx, kind, object))
	}
	if len(requests) == 0 {
		return nil
	}
	outcomes := r.options.Decider.DecideAll(ctx, requests, nil)
	if ctx.Err() != nil {
		return ctx.Err() // a canceled evaluation is not a result
	}
	for i := range outcomes {
		if err := r.tell(ctx, report.Decided{
			Outcome: outcomes[i], Occasion: report.Occasion{Time: asked, Process: report.ProcessScan, Allowed: true}, // the object exists
		}); err != nil {
			return err
		}
	}
	return nil
}

// tell counts a decision, and passes it to the sinks, without the results of mutation rules, and to
// the Keeper.
func (r *round) tell(ctx context.Context, whole report.Decided) error {
	d, isMutation := whole, func(rule policy.RuleResult) bool { return rule.Kind == policy.MutateRule }
	if r.options.Mutations {
		d.Outcome.Rules = slices.DeleteFunc(slices.Clone(d.Outcome.Rules), isMutation)
	}
	r.count(&d.Outcome)
	r.telling.Lock()
	for _, sink := range r.options.Sinks {
		sink.Take(d)
	}
	r.telling.Unlock()
	if r.options.Keeper == nil {
		return nil
	}
	return r.options.Keeper.Put(ctx, whole)
}

func (r *round) count(o *gate.Outcome) {
	r.summary.Objects++
	if o.Matched() {
		r.summary.Matched++
	}
	switch o.Result {
	case gate.Deny:
		r.summary.Denied++
	case gate.Error:
		r.summary.Errors++
	}
}

// excluded reports whether an object is in an excluded namespace, or is one.
func (r *round) excluded(kind Kind, object workload.Object) bool {
	if len(r.options.Excluded) == 0 {
		return false
	}
	namespace := object.Namespace()
	if isNamespace(kind) {
		namespace = object.Name()
	}
	return namespace != "" && wildcard.Any(r.options.Excluded, namespace)
}

func isNamespace(kind Kind) bool { return kind.Group == "" && kind.Kind == "Namespace" }

// request builds the evaluation of an object as if it were created now, without a requesting user
// and without mutation. A tag that admission would pin is not a violation.
func (r *round) request(ctx context.Context, kind Kind, object workload.Object) gate.Request {
	request := gate.Request{Object: object, Stage: gate.StageValidate, Pinning: gate.PinNamed, Mutations: r.options.Mutations}
	if kind.Group == "" && kind.Kind == "Pod" && annotation(object, mirrorAnnotation) == "" {
		request.Pinning = gate.PinHere
	}
	s := &request.Subject
	s.Operation, s.Time = "CREATE", r.options.Now()
	if kind.Resource != "" {
		s.Request = policy.RequestOf(map[string]any{"resource": resourceOf(kind), "requestResource": resourceOf(kind)})
	}
	switch {
	case isNamespace(kind):
		s.NamespaceLabels, s.NamespaceKnown = metadata(object).Member("labels").Texts(), true
	case object.Namespace() != "":
		found := r.labelsOf(ctx, object.Namespace())
		s.NamespaceLabels, s.NamespaceKnown = found.are, found.known
	}
	return request
}

// labelsOf looks up labels once for each page. Unknown labels stay unknown, and rules that need
// them cannot be evaluated.
func (r *round) labelsOf(ctx context.Context, namespace string) labels {
	if known, ok := r.labels[namespace]; ok {
		return known
	}
	var found labels
	are, err := r.options.Namespaces.Labels(ctx, namespace)
	switch {
	case errors.Is(err, ErrUnknown):
	case err != nil:
		r.options.Observer.Failed(fmt.Errorf("labels of namespace %s: %w", namespace, err))
	default:
		found = labels{are: map[string]string{}, known: true}
		maps.Copy(found.are, are)
		found.are[namespaceName] = namespace // the API server sets it on each namespace
	}
	r.labels[namespace] = found
	return found
}

const (
	// namespaceName is a label that every namespace has.
	namespaceName = "kubernetes.io/metadata.name"
	// mirrorAnnotation marks the mirror pod of a static pod, which is immutable.
	mirrorAnnotation = "kubernetes.io/config.mirror"
)
