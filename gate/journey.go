package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Decide evaluates one object. It always returns an outcome; failures are reasons in it.
func (g *Gate) Decide(ctx context.Context, request Request) Outcome {
	return g.DecideAll(ctx, []Request{request}, nil)[0]
}

// DecideAll evaluates objects together, by one snapshot: a reference that several of them
// use is resolved and verified once. The outcomes are in the order of the requests.
// Progress, if given, is called after each reference with the number of finished ones,
// from one goroutine at a time.
func (g *Gate) DecideAll(ctx context.Context, requests []Request, progress func(done, total int)) []Outcome {
	outcomes := make([]Outcome, len(requests))
	ctx, cancel := context.WithTimeout(ctx, g.options.timeout)
	defer cancel()
	ctx = waittime.With(ctx)
	snapshot, err := g.state.Snapshot(ctx)
	if err != nil {
		for i, request := range requests {
			outcomes[i] = failed(request, deadline.Reason(err, ""))
		}
		return outcomes
	}

	trip := newJourney(g, snapshot)
	plans := make([]*planned, len(requests))
	broken := make([]error, len(requests))
	for i, request := range requests {
		broken[i] = panics.Catch(func() { plans[i] = trip.plan(ctx, request) })
	}
	trip.run(ctx, progress)
	trip.judge(ctx, plans)
	asked := waittime.Begin(ctx)
	err = errors.Join(panics.Catch(func() { trip.override(ctx, plans) }), panics.Catch(func() { trip.redirect(ctx, plans) }))
	asked()
	if err != nil {
		for i := range broken {
			broken[i] = errors.Join(broken[i], err)
		}
	}
	for i, request := range requests {
		if broken[i] == nil {
			broken[i] = panics.Catch(func() { outcomes[i] = plans[i].settle(ctx, trip) })
		}
		if broken[i] != nil {
			outcomes[i] = failed(request, policy.Reason{Code: policy.Internal, Message: broken[i].Error()})
		}
	}
	return outcomes
}

// failed is the outcome of an object that could not be evaluated.
func failed(request Request, reason policy.Reason) Outcome {
	return Outcome{Subject: request.subject(), Object: request.Object, Source: request.Object.Source(), Result: Error, Reasons: []policy.Reason{reason}}
}

// patience is the drain timeout: how long unfinished works are awaited after the request's
// time has expired. They end by themselves, and their partial results are reported.
const patience = 20 * time.Millisecond

// journey is the state of one batch. Each reference is evaluated once in it.
type journey struct {
	gate     *Gate
	snapshot Snapshot
	works    map[workKey]*work
	tasks    map[accessKey]task
	order    []*work
}

func newJourney(g *Gate, snapshot Snapshot) *journey {
	return &journey{gate: g, snapshot: snapshot, works: map[workKey]*work{}, tasks: map[accessKey]task{}}
}

// workKey identifies a work. Mirrors are part of the key, since they select the
// repositories to search. The workload's identity is part of it then, too: the scope does
// not cover its access to mirrors.
type workKey struct{ scope, ref, way, identity string }

// accessKey identifies the credentials and the repository of a check: checks with equal
// keys share a session, and so their work.
type accessKey struct {
	ref                        image.Ref
	credentials, identity, way string
}

// work returns the work on a check's reference under its credentials, which
// checks of other containers, objects and policies share.
func (j *journey) work(ctx context.Context, check *policy.Check, w *way, identity workload.Identity, identityKey string) task {
	key := accessKey{ref: asWritten(check.Image).Ref, credentials: credentialsKey(check.Credentials), identity: identityKey, way: w.key()}
	t, ok := j.tasks[key]
	if !ok {
		t.work, t.err = j.open(ctx, key, w, Access{Credentials: check.Credentials, Workload: identity})
		j.tasks[key] = t
	}
	if t.err == nil {
		t.at = t.work.Add(check)
	}
	return t
}

// open opens a session, and returns the work of all sessions that see the same.
func (j *journey) open(ctx context.Context, who accessKey, about *way, access Access) (*work, error) {
	var evidence []image.Repository
	ref, key := who.ref, workKey{ref: who.ref.String(), way: who.way}
	if about != nil {
		evidence, access.Workload = about.evidence, withSecrets(access.Workload, about.secrets)
		key.identity = who.identity
	}
	session, err := j.gate.registries.Open(ctx, access, ref.Repository())
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", deadline.Mark(ctx, err))
	}
	key.scope = session.Scope()
	w, ok := j.works[key]
	if !ok {
		w = &work{ref: ref, session: session}
		reference := evaluate.Reference{Ref: ref, Registry: session, Prover: j.snapshot.Prover}
		if len(evidence) > 0 {
			reference.Evidence, reference.Open = evidence, j.opener(w, access)
			if chooser := j.gate.options.chooser; chooser != nil {
				reference.Rest = chooser.Rest
			}
		}
		w.Evaluation = j.gate.memory.evaluator.Evaluate(reference)
		j.works[key] = w
		j.order = append(j.order, w)
	}
	return w, nil
}

// opener returns a function that opens the evidence repositories of a work.
func (j *journey) opener(w *work, access Access) func(context.Context, image.Repository) (evaluate.Registry, error) {
	return func(ctx context.Context, repository image.Repository) (evaluate.Registry, error) {
		session, err := j.gate.registries.Open(ctx, access, repository)
		if err == nil {
			w.opened(session)
		}
		return session, err
	}
}

func credentialsKey(c policy.Credentials) string {
	if !c.AllowInsecure && len(c.Providers)+len(c.Secrets) == 0 {
		return ""
	}
	return fmt.Sprintf("%t %q %q", c.AllowInsecure, c.Providers, c.Secrets)
}

func identityKey(i workload.Identity) string {
	key := i.Namespace + "/" + i.ServiceAccount // each is a name without a slash
	for _, secret := range i.PullSecrets {
		key += "\x00" + secret
	}
	return key
}

// run does all works: first those that the cache answers completely, then the others,
// several references at a time.
func (j *journey) run(ctx context.Context, progress func(done, total int)) {
	finished := 0
	finish := func() {
		finished++
		if progress != nil {
			progress(finished, len(j.order))
		}
	}
	var open []*work
	for _, w := range j.order {
		if result, ok := w.Cached(ctx); ok {
			w.result = result
			finish()
		} else {
			open = append(open, w)
		}
	}
	j.runAll(ctx, open, finish)
}

// runAll does the works that the cache does not answer, several at a time, and reports
// each finished one. A work that ignores the deadline is abandoned.
func (j *journey) runAll(ctx context.Context, works []*work, finish func()) {
	if len(works) == 0 {
		return
	}
	defer waittime.Begin(ctx)()
	slots := make(chan struct{}, j.gate.options.images)
	type finished struct {
		work   *work
		result *evaluate.Result
	}
	done := make(chan finished, len(works))
	for _, w := range works {
		go func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				done <- finished{w, w.Refuse(policy.ErrCrowdedOut)}
				return
			}
			w.begun.Store(true)
			done <- finished{w, w.Run(ctx)}
		}()
	}
	over := ctx.Done()
	var enough <-chan time.Time
	for left := len(works); left > 0; {
		select {
		case one := <-done:
			one.work.result = one.result
			finish()
			left--
		case <-over:
			over, enough = nil, time.After(patience)
		case <-enough:
			return
		}
	}
}
