package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
)

// run is one run of a rule.
type run struct {
	*Controller
	scheduled
	key       string
	at        time.Time // of the schedule
	record    Record    // as stored
	continued bool

	used   int // deletions that were made, or may have been
	result Run
	began  time.Time
}

// The reasons to stop a run.
var (
	errLimit   = errors.New("the limit of deletions is reached")
	errChanged = errors.New("the policy was changed or deleted")
	errRecord  = errors.New("the run could not be recorded")
)

// do makes the run.
func (r *run) do(ctx context.Context) {
	r.began = r.options.Now()
	r.result = Run{Policy: r.policy, Rule: r.rule.Name(), Scheduled: r.at, Continued: r.continued}
	r.used = r.record.Deletions
	if r.continued && r.began.Sub(r.at) > MaxLate {
		r.finish(ctx, Missed)
		return
	}
	if !r.continued {
		r.record, r.used = Record{Form: formOf(r.policy), Scheduled: r.at, Open: true}, 0
	}
	if err := r.save(ctx); err != nil {
		r.failed(ctx, err)
		return // nothing was deleted: the schedule stays due
	}
	bounded, cancel := context.WithTimeout(ctx, maxRun)
	defer cancel()
	err := r.each(bounded)
	switch {
	case err == nil:
		r.finish(ctx, r.completed())
	case errors.Is(err, errRecord), ctx.Err() != nil:
		r.report(Handover) // its record stays open
	case errors.Is(err, errLimit):
		r.finish(ctx, LimitReached)
	case errors.Is(err, errChanged):
		r.finish(ctx, PolicyChanged)
	case bounded.Err() != nil:
		r.finish(ctx, TimedOut)
	default:
		r.result.note(err.Error())
		r.finish(ctx, Errors)
	}
}

// completed is the end of a run that saw all objects.
func (r *run) completed() End {
	if r.result.Failed+r.result.Undecided > 0 {
		return Errors
	}
	return Completed
}

// save stores the record of the run.
func (r *run) save(ctx context.Context) error {
	stored := r.record
	err := r.ledger.update(ctx, func(runs map[string]Record) { runs[r.key] = stored })
	if err != nil {
		return fmt.Errorf("policy %s: %w", r.policy.ID(), err)
	}
	return nil
}

// finish records and reports the end of the run.
func (r *run) finish(ctx context.Context, why End) {
	if ctx.Err() != nil {
		r.report(Handover)
		return
	}
	r.record.Open, r.record.Deletions = false, r.used
	if err := r.save(ctx); err != nil {
		r.failed(ctx, err) // the next leader, or this one, finds it open and continues
	}
	r.report(why)
}

func (r *run) report(why End) {
	r.result.End, r.result.Duration = why, r.options.Now().Sub(r.began)
	r.options.Observer.Ended(r.result)
}

// each decides all objects that the rule may select. A kind that cannot be listed does not keep the
// others from being decided.
func (r *run) each(ctx context.Context) error {
	kinds, err := kindsOf(ctx, r.options.Cluster, r.rule)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		for _, namespace := range r.namespaces(kind) {
			err := r.options.Cluster.Each(ctx, kind, namespace, r.rule.Labels(), func(object map[string]any) error {
				r.result.Examined++
				if r.ledger.isStale() {
					return errRecord // another process may have taken over
				}
				return r.object(ctx, kind, object)
			})
			switch {
			case err == nil:
			case isStop(err), ctx.Err() != nil:
				return err
			default:
				r.result.Failed++
				r.result.note(fmt.Sprintf("list %s: %v", kind.Resource, err))
			}
		}
	}
	return nil
}

func isStop(err error) bool {
	return errors.Is(err, errLimit) || errors.Is(err, errChanged) || errors.Is(err, errRecord)
}

// kindsOf returns the kinds that a rule may select, each once.
func kindsOf(ctx context.Context, from Cluster, rule policy.Deletion) ([]background.Kind, error) {
	var kinds []background.Kind
	there := map[background.Kind]bool{}
	for _, target := range rule.Targets() {
		if target.Subresource != "" {
			continue // no stored object
		}
		served, err := from.Served(ctx, target)
		if err != nil {
			return nil, fmt.Errorf("which kinds does the API server serve: %w", err)
		}
		for _, kind := range served {
			if !there[kind] {
				there[kind] = true
				kinds = append(kinds, kind)
			}
		}
	}
	if len(kinds) > maxKinds {
		return nil, fmt.Errorf("the rule names %d kinds, more than %d (maxKinds)", len(kinds), maxKinds)
	}
	return kinds, nil
}

// namespaces are those that are listed; an empty one means all. A policy of a namespace lists in
// that alone, and selects nothing outside of it.
func (r *run) namespaces(kind background.Kind) []string {
	switch {
	case r.policy.Namespace == "":
		return []string{""}
	case kind.Namespaced:
		return []string{r.policy.Namespace}
	}
	return nil
}

// object decides one listed object, and deletes it. An error stops the run.
func (r *run) object(ctx context.Context, kind background.Kind, listed map[string]any) error {
	at := identityOf(listed)
	if at.leaving {
		return nil
	}
	if first := r.decide(ctx, listed); first.Verdict != deletion.Delete {
		return r.kept(ctx, kind, at, first)
	}
	var last error
	for range maxTries {
		current, err := r.options.Cluster.Get(ctx, kind, at.namespace, at.name)
		switch {
		case errors.Is(err, background.ErrNotFound):
			return nil
		case err != nil:
			r.deleted(kind, at, Failed, fmt.Sprintf("read it again: %v", err))
			return ctx.Err()
		}
		now := identityOf(current)
		if now.uid != at.uid || now.uid == "" || now.leaving {
			return nil // another object of that name, which no list has yet
		}
		if again := r.decide(ctx, current); again.Verdict != deletion.Delete {
			return r.kept(ctx, kind, now, again)
		}
		if err := r.reserve(ctx); err != nil {
			return err
		}
		last = r.options.Cluster.Delete(ctx, kind, current, r.rule.Propagation())
		switch {
		case last == nil:
			r.deleted(kind, now, Deleted, "")
			return nil
		case errors.Is(last, background.ErrNotFound):
			return nil
		case !errors.Is(last, background.ErrConflict):
			if errors.Is(last, background.ErrRefused) {
				r.used-- // objects that are always refused must not use up each run
			}
			r.deleted(kind, now, Failed, last.Error())
			return ctx.Err()
		}
	}
	r.deleted(kind, at, Failed, last.Error())
	return ctx.Err()
}

// reserve counts the next deletion, after it is sure that the run may go on.
func (r *run) reserve(ctx context.Context) error {
	if !r.isCurrent() {
		return errChanged
	}
	if r.used >= r.options.Limit {
		return errLimit
	}
	if r.used >= r.record.Deletions {
		r.record.Deletions = min(r.used+reserved, r.options.Limit)
		if err := r.save(ctx); err != nil {
			r.failed(ctx, err)
			return errRecord
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.used++
	return nil
}

// isCurrent reports whether the policy is in force as it was when the run began.
func (r *run) isCurrent() bool {
	active := r.options.Policies.Policies()
	if active == nil {
		return false
	}
	for _, p := range active.Policies() {
		if p == r.policy {
			return true
		}
		if p.ID() == r.policy.ID() {
			return p.Broken == nil && formOf(p) == formOf(r.policy)
		}
	}
	return false
}

// decide decides an object by the rule, with the current exceptions.
func (r *run) decide(ctx context.Context, object map[string]any) deletion.Decision {
	var exceptions []*policy.Exception
	if active := r.options.Policies.Policies(); active != nil {
		exceptions = active.Exceptions()
	}
	about := r.options.about(ctx, object)
	return deletion.Decider{Protection: r.options.Protection, Exceptions: exceptions}.Decide(ctx, r.policy, r.rule, about)
}

// about is an object in the form that rules decide.
func (o *Options) about(ctx context.Context, object map[string]any) policy.Case {
	at := identityOf(object)
	s := &policy.Subject{
		Object: policy.ContentOf(object), Group: groupOf(at.apiVersion), Version: versionOf(at.apiVersion), Kind: at.kind,
		Namespace: at.namespace, Name: at.name, Time: o.Now(),
	}
	switch {
	case s.Kind == "Namespace" && s.Group == "":
		s.Namespace = s.Name // as in requests for a namespace
		s.NamespaceLabels, s.NamespaceKnown = at.labels, true
	case s.Namespace != "":
		if labels, err := o.Namespaces.Labels(ctx, s.Namespace); err == nil {
			s.NamespaceLabels, s.NamespaceKnown = labels, true
		}
	}
	about := policy.Case{Subject: s}
	if o.Images != nil {
		about.Find = o.Images.Finder(object)
	}
	return about
}

// kept counts an object that stays although the rule selects it, or may. An evaluation that was
// ended is no result.
func (r *run) kept(ctx context.Context, kind background.Kind, at identity, decided deletion.Decision) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	message := "the rule could not be evaluated"
	if len(decided.Reasons) > 0 {
		message = decided.Reasons[0].Message
	}
	switch {
	case decided.Verdict == deletion.Unknown:
		r.deleted(kind, at, Undecided, message)
	case decided.Protected:
		r.deleted(kind, at, Protected, message)
	}
	return nil
}

// deleted reports what happened to an object.
func (r *run) deleted(kind background.Kind, at identity, outcome Outcome, message string) {
	r.result.count(outcome, kind.Kind+" "+at.String()+": "+message)
	r.options.Observer.Deleted(Deletion{
		Policy: r.policy, Rule: r.rule.Name(), Scheduled: r.at, APIVersion: at.apiVersion, Kind: kind,
		Namespace: at.namespace, Name: at.name, UID: at.uid, Propagation: r.rule.Propagation(), Outcome: outcome, Message: message,
	})
}
