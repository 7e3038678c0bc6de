package status

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/configuration/reconcile"
)

const (
	// GraceTime is how long a new leader leaves the status of policies unchanged before it has
	// observed the configurations in force: they were, for the previous leader.
	GraceTime = 15 * time.Second
	// soonestProbe and latestProbe bound the time between two probes of the same configurations;
	// an API server takes some milliseconds to load one.
	soonestProbe, latestProbe = 100 * time.Millisecond, 10 * time.Second
	// forbiddenPause is the pause after a probe without permission.
	forbiddenPause = 30 * time.Second
)

// Readiness tracks, on the leader, up to which set of policies the webhook configurations
// are in force: stored by the API server and seen in use. A policy that was in force stays
// so while the configurations change for others. It is safe for concurrent use.
type Readiness struct {
	log     *slog.Logger
	changed func() // an input of a condition has changed
	now     func() time.Time

	mu    sync.Mutex
	began time.Time // of the leadership
	// managed is false where the gateway does not manage the configurations.
	managed bool
	// round is the latest that left the configurations correct, for the set configured; failed is
	// the error of a later one.
	round      reconcile.Round
	configured int64
	holds      record.Coverage // of round
	failed     error
	observation
	wake, coverage gateway.Signal
	// policies are the results of the latest round for single policies, by ID.
	policies map[string]policyRound
}

// observation is the result of probes.
type observation struct {
	// observed is the latest set with configurations that were observed in use, under the marks
	// seen; probed is why those of round are not, yet.
	observed int64
	seen     [2]string
	probed   error
	// known: this leader has observed configurations in use, so that Unknown is a change.
	known bool
	// covered is what the observed configurations hold; nil for none.
	covered *record.Coverage
}

// policyRound is the result of a round for a policy.
type policyRound struct {
	absent   configuration.Absent
	warnings []string
	excluded bool // it applies to excluded namespaces alone
	// renewed: kinds that it names came since the configurations were last observed in use.
	renewed bool
	// native says that the API servers evaluate it themselves, or why they do not.
	native string
}

// NewReadiness makes a Readiness, which calls changed when a condition may have changed.
func NewReadiness(log *slog.Logger, changed func()) *Readiness {
	return &Readiness{log: log, changed: changed, now: time.Now, managed: true}
}

// Begin resets the state: another replica may have led since.
func (r *Readiness) Begin(managed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.began, r.managed = r.now(), managed
	r.round, r.configured, r.failed = reconcile.Round{}, 0, nil
	r.observation = observation{}
	r.policies = nil
}

// Kept records a successful round for a set of policies.
func (r *Readiness) Kept(round reconcile.Round, sequence int64, policies []*policy.Policy, native Native) {
	found := policyRounds(round, policies, native)
	holds := native.coverage(policies)
	r.mu.Lock()
	before := r.observed
	marks := [2]string{round.Mutating, round.Validating}
	isSeen, isNew := marks == r.seen, marks != [2]string{r.round.Mutating, r.round.Validating}
	r.round, r.configured, r.holds, r.failed = round, sequence, holds, nil
	for id, was := range r.policies {
		now := found[id]
		now.renewed = !isSeen && (was.renewed || len(now.absent.Kinds) < len(was.absent.Kinds))
		if now.renewed || len(now.absent.Kinds)+len(now.warnings) > 0 || now.native != "" {
			found[id] = now
		}
	}
	changed := !maps.EqualFunc(r.policies, found, policyRound.equal)
	r.policies = found
	switch {
	case isSeen:
		r.observed, r.covered = sequence, &holds
	case isNew: // the result of a probe of the same marks stays: the condition does not alternate
		r.probed = nil
	}
	changed = changed || r.observed != before
	r.mu.Unlock()
	r.wake.Notify()
	if changed {
		r.changed()
	}
}

// policyRounds returns the results of a round by policy, without empty ones.
func policyRounds(round reconcile.Round, policies []*policy.Policy, native Native) map[string]policyRound {
	found := map[string]policyRound{}
	for _, w := range round.Warnings {
		if w.Policy != "" {
			one := found[w.Policy]
			one.warnings, one.excluded = append(one.warnings, w.Message), one.excluded || w.Excluded
			found[w.Policy] = one
		}
	}
	kinds := configuration.KindsOf(round.Resources)
	for _, p := range policies {
		one := found[p.ID()]
		one.absent, one.native = kinds.Absent(p), native.of(p)
		if len(one.absent.Kinds) > 0 || one.native != "" {
			found[p.ID()] = one
		}
	}
	return found
}

func (r policyRound) equal(other policyRound) bool {
	return r.renewed == other.renewed && r.excluded == other.excluded && r.native == other.native &&
		r.absent.All == other.absent.All && slices.Equal(r.absent.Kinds, other.absent.Kinds) &&
		slices.Equal(r.warnings, other.warnings)
}

// Holding returns the policies that the webhooks enforce; false before that is observed.
func (r *Readiness) Holding() (record.Coverage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.covered == nil {
		return record.Coverage{}, false
	}
	return *r.covered, true
}

// HoldingChanged returns a channel that is closed when the webhooks are observed to enforce more.
func (r *Readiness) HoldingChanged() <-chan struct{} { return r.coverage.Changed() }

// about returns the result of the latest round for a policy.
func (r *Readiness) about(id string) policyRound {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.policies[id]
}

// Broke records a failed round.
func (r *Readiness) Broke(err error) {
	r.mu.Lock()
	changed := r.failed == nil || r.failed.Error() != err.Error()
	r.failed = err
	r.mu.Unlock()
	if changed {
		r.changed()
	}
}

// Lost records that another client changed or deleted a configuration: it was not in force.
func (r *Readiness) Lost() {
	r.mu.Lock()
	changed := r.observed != 0
	r.observed, r.seen, r.covered = 0, [2]string{}, nil
	r.mu.Unlock()
	if changed {
		r.changed()
	}
}

// pending returns the marks to observe; false if there are none.
func (r *Readiness) pending() (marks [2]string, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks = [2]string{r.round.Mutating, r.round.Validating}
	return marks, marks != [2]string{} && marks != r.seen
}

// result records the result of a probe.
func (r *Readiness) result(marks [2]string, err error) {
	r.mu.Lock()
	if marks != [2]string{r.round.Mutating, r.round.Validating} {
		r.mu.Unlock()
		return // there are newer ones
	}
	changed := err == nil || r.probed == nil || r.probed.Error() != err.Error()
	r.probed = err
	if err == nil {
		holds := r.holds
		r.seen, r.observed, r.known, r.covered = marks, r.configured, true, &holds
		r.coverage.Notify()
		for id, one := range r.policies {
			one.renewed = false
			r.policies[id] = one
		}
	}
	r.mu.Unlock()
	if !changed {
		return
	}
	switch _, forbidden := errors.AsType[*probe.ForbiddenError](err); {
	case err == nil:
		r.log.Info("the API servers use the webhook configurations")
	case forbidden:
		r.log.Warn("the gateway may not find out whether the API servers use the webhook configurations; policies are not Ready (create on configmaps in its namespace)", slog.String("error", err.Error()))
	default:
		r.log.Info("an API server does not use the webhook configurations yet", slog.String("error", err.Error()))
	}
	r.changed()
}

// effect is the contribution of readiness to a condition; without a reason the document is in
// force.
type effect struct {
	reason, why string
	settled     bool
}

// of returns the effect for a document that is in the sets since one. renewed means that kinds
// which it names came since.
func (r *Readiness) of(since int64, renewed bool) effect {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, forbidden := errors.AsType[*probe.ForbiddenError](r.probed)
	settled := r.known || r.now().Sub(r.began) >= GraceTime
	switch {
	case !r.managed:
		return effect{reasonNotManaged, "it is active, and the gateway does not keep the webhook configurations (webhooks.disabled), so that it cannot find out for which requests it is called", true}
	case since != Unpublished && since <= r.observed && !renewed:
		return effect{settled: true}
	case r.failed != nil:
		return effect{reasonNotConfigured, "the webhook configurations could not be updated: " + r.failed.Error(), settled}
	case since == Unpublished || since > r.configured:
		return effect{reasonNotConfigured, "the webhook configurations are being updated", settled}
	case forbidden:
		return effect{reasonProbeForbidden, "the webhook configurations hold it; whether the API servers use them cannot be found out: grant the gateway create on configmaps in its namespace: " + r.probed.Error(), true}
	case r.probed != nil:
		return effect{reasonNotObserved, "the webhook configurations hold it, and not every API server uses them yet: " + r.probed.Error(), settled}
	}
	return effect{reasonNotObserved, "the webhook configurations hold it; the API servers are being asked whether they use them", settled}
}

// prober probes whether the API servers use configurations with some marks.
type prober interface {
	Probe(ctx context.Context, marks ...string) error
}

// Run probes each new pair of configurations until they are in use, while ctx lasts.
func (r *Readiness) Run(ctx context.Context, by prober) {
	// Configurations not observed by then are not ready.
	settled := time.AfterFunc(GraceTime, r.changed)
	defer settled.Stop()
	var last [2]string
	pause := soonestProbe
	for ctx.Err() == nil {
		woken := r.wake.Changed()
		marks, is := r.pending()
		if !is {
			select {
			case <-ctx.Done():
			case <-woken:
			}
			continue
		}
		if marks != last {
			last, pause = marks, soonestProbe
		}
		err := by.Probe(ctx, marks[:]...)
		if ctx.Err() != nil {
			return
		}
		r.result(marks, err)
		if err == nil {
			continue
		}
		wait := pause
		if _, forbidden := errors.AsType[*probe.ForbiddenError](err); forbidden {
			wait = forbiddenPause
		}
		pause = min(2*pause, latestProbe)
		r.pause(ctx, wait, marks)
	}
}

// pause waits for wait, or until there are other marks.
func (r *Readiness) pause(ctx context.Context, wait time.Duration, marks [2]string) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		woken := r.wake.Changed()
		if now, _ := r.pending(); now != marks {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-woken:
		}
	}
}
