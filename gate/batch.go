package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// drainTimeout is how long unfinished evaluations are awaited after the time of the request
// has expired. They end by themselves, and their partial results are reported.
const drainTimeout = 20 * time.Millisecond

// batch is the state of one batch. Each reference is evaluated once in it.
type batch struct {
	gate        *Gate
	snapshot    Snapshot
	evaluations map[evaluationKey]*imageEvaluation
	checks      map[accessKey]checkEvaluation
	order       []*imageEvaluation
}

func newBatch(g *Gate, snapshot Snapshot) *batch {
	return &batch{gate: g, snapshot: snapshot, evaluations: map[evaluationKey]*imageEvaluation{}, checks: map[accessKey]checkEvaluation{}}
}

// evaluationKey identifies an image evaluation. Mirrors are part of the key, since they select the
// repositories to search. The workload's identity is part of it then, too: the scope does
// not cover its access to mirrors.
type evaluationKey struct{ scope, ref, mirrorPlan, identity string }

// accessKey identifies a reference with the access by which it is read: checks with equal
// keys share a session, and so their image evaluation.
type accessKey struct {
	ref                               image.Ref
	credentials, identity, mirrorPlan string
}

// evaluationOf returns the image evaluation of a check's reference under its credentials, which
// checks of other containers, objects and policies share.
func (b *batch) evaluationOf(ctx context.Context, check *policy.Check, plan *mirrorPlan, identity workload.Identity, identityKey string) checkEvaluation {
	key := accessKey{ref: asWritten(check.Image).Ref, credentials: check.Credentials.Key(), identity: identityKey, mirrorPlan: plan.key()}
	evaluation, ok := b.checks[key]
	if !ok {
		evaluation.image, evaluation.err = b.open(ctx, key, plan, Access{Credentials: check.Credentials, Workload: identity})
		b.checks[key] = evaluation
	}
	if evaluation.err == nil {
		evaluation.at = evaluation.image.Add(check)
	}
	return evaluation
}

// open opens a session, and returns the image evaluation of all sessions that see the same.
func (b *batch) open(ctx context.Context, by accessKey, plan *mirrorPlan, access Access) (*imageEvaluation, error) {
	var evidence []image.Repository
	ref, key := by.ref, evaluationKey{ref: by.ref.String(), mirrorPlan: by.mirrorPlan}
	if plan != nil {
		evidence, access.Workload = plan.evidence, withSecrets(access.Workload, plan.secrets)
		key.identity = by.identity
	}
	session, err := b.gate.registries.Open(ctx, access, ref.Repository())
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", deadline.Mark(ctx, err))
	}
	key.scope = session.Scope()
	evaluation, ok := b.evaluations[key]
	if !ok {
		evaluation = &imageEvaluation{ref: ref, session: session}
		reference := evaluate.Reference{Ref: ref, Registry: session, Prover: b.snapshot.Prover}
		if len(evidence) > 0 {
			reference.Evidence, reference.Open = evidence, b.opener(evaluation, access)
			if chooser := b.gate.options.chooser; chooser != nil {
				reference.Rest = chooser.Rest
			}
		}
		evaluation.Evaluation = b.gate.memory.evaluator.Evaluate(reference)
		b.evaluations[key] = evaluation
		b.order = append(b.order, evaluation)
	}
	return evaluation, nil
}

// opener returns a function that opens the evidence repositories of an image evaluation.
func (b *batch) opener(evaluation *imageEvaluation, access Access) func(context.Context, image.Repository) (evaluate.Registry, error) {
	return func(ctx context.Context, repository image.Repository) (evaluate.Registry, error) {
		session, err := b.gate.registries.Open(ctx, access, repository)
		if err == nil {
			evaluation.opened(session)
		}
		return session, err
	}
}

func identityKey(i workload.Identity) string {
	key := i.Namespace + "/" + i.ServiceAccount // each is a name without a slash
	for _, secret := range i.PullSecrets {
		key += "\x00" + secret
	}
	return key
}

// run does all evaluations: first those that the cache answers completely, then the others,
// several references at a time.
func (b *batch) run(ctx context.Context, progress func(done, total int)) {
	finished := 0
	finish := func() {
		finished++
		if progress != nil {
			progress(finished, len(b.order))
		}
	}
	var open []*imageEvaluation
	for _, evaluation := range b.order {
		if result, ok := evaluation.Cached(ctx); ok {
			evaluation.result = result
			finish()
		} else {
			open = append(open, evaluation)
		}
	}
	b.runAll(ctx, open, finish)
}

// runAll does the evaluations that the cache does not answer, several at a time, and reports
// each finished one. An evaluation that ignores the deadline is abandoned.
func (b *batch) runAll(ctx context.Context, evaluations []*imageEvaluation, finish func()) {
	if len(evaluations) == 0 {
		return
	}
	defer waittime.Begin(ctx)()
	slots := make(chan struct{}, b.gate.options.images)
	type finished struct {
		evaluation *imageEvaluation
		result     *evaluate.Result
	}
	done := make(chan finished, len(evaluations))
	for _, evaluation := range evaluations {
		go func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				done <- finished{evaluation, evaluation.Refuse(policy.ErrCrowdedOut)}
				return
			}
			evaluation.begun.Store(true)
			done <- finished{evaluation, evaluation.Run(ctx)}
		}()
	}
	over := ctx.Done()
	var enough <-chan time.Time
	for left := len(evaluations); left > 0; {
		select {
		case one := <-done:
			one.evaluation.result = one.result
			finish()
			left--
		case <-over:
			over, enough = nil, time.After(drainTimeout)
		case <-enough:
			return
		}
	}
}

// plain returns the image evaluation of a reference by the workload's own identity, without adding
// a check. Checks that open the same session may share the evaluation; without them it only
// resolves the reference.
func (b *batch) plain(ctx context.Context, ref image.Ref, plan *mirrorPlan, identity workload.Identity, identityKey string) checkEvaluation {
	key := accessKey{ref: ref, identity: identityKey, mirrorPlan: plan.key()}
	evaluation, ok := b.checks[key]
	if !ok {
		evaluation.image, evaluation.err = b.open(ctx, key, plan, Access{Workload: identity})
		b.checks[key] = evaluation
	}
	return evaluation
}

// newTargetRequest prepares to ask a route's targets.
func (b *batch) newTargetRequest(route *mirror.Route, identity workload.Identity, identityKey string) *targetRequest {
	request := &targetRequest{sessions: map[image.Repository]Session{}, failed: map[image.Repository]error{}}
	access := Access{Workload: withSecrets(identity, route.PullSecrets)}
	if route.Resolve == mirror.Target {
		request.Scope = " at " + route.Mirror + " of " + b.snapshot.Mirrors.Hash() + " for " + identityKey
	}
	open := func(ctx context.Context, repository image.Repository) (redirect.Session, error) {
		if known, err := request.opened(repository); known != nil || err != nil {
			return known, err
		}
		session, err := b.gate.registries.Open(ctx, access, repository) // unlocked: it may wait
		return request.keep(repository, session, err)
	}
	request.Pending = b.gate.options.chooser.Pending(redirect.Request{Route: route, Open: open})
	return request
}
