package background

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/source"
)

// inherit handles a generated object of a deleted trigger: it is deleted, unless another trigger
// requires the identical object.
func (e *evaluation) inherit(ctx context.Context, set *set.Set, k kept) {
	id := queue.RuleID{Policy: k.origin.Policy, Rule: k.origin.Rule}
	if !k.origin.Synchronize {
		return // without synchronize it is unmanaged after its creation
	}
	terms, known := termsOf(set, id)
	if known && (!terms.Synchronize || terms.Deletions) {
		return // of a rule with deletions the object stays, as in Kyverno
	}
	if !known {
		if stays, err := e.outlives(ctx, set, k); err != nil || stays {
			if err != nil {
				e.failed(Work{Trigger: k.origin.Trigger, Policy: id.Policy, Rule: id.Rule, Object: k.at.String(), Err: err})
			}
			return
		}
	}
	if others := e.there.takeOtherTriggers(k.at); len(others) > 0 {
		for _, other := range others {
			e.putBack(other, k.origin)
		}
		e.again = true // possibly none of them requires it any more
		return
	}
	e.drop(ctx, k)
}

// outlives reports whether an object of an unknown rule stays: the policy requests it, or still
// exists and cannot be compiled. An error means that the result is unknown.
func (e *evaluation) outlives(ctx context.Context, set *set.Set, k kept) (bool, error) {
	for _, p := range set.Policies() {
		if p.ID() == k.origin.Policy {
			return p.Broken != nil || k.origin.Orphan, nil //nolint:nilerr // what breaks a policy is no error of this evaluation
		}
	}
	gone, err := e.options.Policies.Gone(ctx, k.origin.Policy)
	if err != nil {
		return true, fmt.Errorf("find out whether the policy is gone: %w", err)
	}
	return !gone || k.origin.Orphan, nil
}

// termsOf returns the terms of a rule, and false if the rule does not exist.
func termsOf(set *set.Set, id queue.RuleID) (policy.Terms, bool) {
	for _, p := range set.Policies() {
		if p.ID() != id.Policy {
			continue
		}
		for _, g := range p.Generations {
			if g.Name() == id.Rule {
				return g.Terms(), true
			}
		}
	}
	return policy.Terms{}, false
}

// sees reports whether a rule matches triggers in the version in which this one was read.
func (e *evaluation) sees(set *set.Set, id queue.RuleID) bool {
	for _, p := range set.Policies() {
		for _, g := range p.Generations {
			if p.ID() == id.Policy && g.Name() == id.Rule {
				return slices.ContainsFunc(g.Targets(), func(t policy.Target) bool {
					return wildcard.Match(t.Version, inspect.Version(e.self.APIVersion)) && wildcard.Match(t.Group, e.at.Group)
				})
			}
		}
	}
	return false
}

// retire handles a generated object of the trigger that the current rules did not require.
func (e *evaluation) retire(ctx context.Context, set *set.Set, results map[queue.RuleID]*generated, k kept) {
	id := queue.RuleID{Policy: k.origin.Policy, Rule: k.origin.Rule}
	terms, known := termsOf(set, id)
	switch {
	case !k.origin.Synchronize:
		return
	case known && !e.sees(set, id):
		return // it matches another version of the trigger
	case known && !terms.Synchronize:
		return // the rule was changed: its earlier objects are unmanaged
	case !known:
		stays, err := e.outlives(ctx, set, k)
		if err != nil {
			e.failed(Work{Policy: id.Policy, Rule: id.Rule, Object: k.at.String(), Err: err})
		}
		if err == nil && !stays {
			e.drop(ctx, k)
		}
		return
	}
	if r := results[id]; r != nil {
		undecided := r.Skip == "" && r.Ruling.Result != policy.Pass
		unasked := r.Skip == "" && (r.NeedsRequester && e.unknown != nil || e.depth >= maxDepth || r.Terms.SkipGenerated && e.depth > 0)
		isKept := len(r.Missing) > 0 && !slices.ContainsFunc(r.Missing, func(ref source.Ref) bool { return ref.String() == k.origin.Source })
		if undecided || unasked || isKept || r.Exception != nil {
			return // the result is unknown; an exception leaves the object unchanged
		}
	}
	e.drop(ctx, k)
}

// drop deletes a generated object, unless it has a different origin now.
func (e *evaluation) drop(ctx context.Context, k kept) {
	err := e.dropNow(ctx, k)
	id := queue.RuleID{Policy: k.origin.Policy, Rule: k.origin.Rule}
	switch {
	case errors.Is(err, ErrNotFound):
		e.there.remove(k.at)
	case errors.Is(err, errNotOurs):
		e.there.remove(k.at) // a user has changed its origin, and owns it
	case err != nil:
		e.failed(Work{Trigger: k.origin.Trigger, Policy: id.Policy, Rule: id.Rule, Object: k.at.String(), Err: fmt.Errorf("delete: %w", err)})
	default:
		e.did(id, Deleted, k.at)
	}
}

// errNotOurs: the object's origin is no longer the recorded rule and trigger.
var errNotOurs = errors.New("it is there for another reason")

func (e *evaluation) dropNow(ctx context.Context, k kept) error {
	object, err := e.options.Cluster.Get(ctx, k.kind, k.at.Namespace, k.at.Name)
	if err != nil {
		return err
	}
	origin, err := e.options.Records.ReadOrigin(object)
	if err != nil || origin.Trigger != k.origin.Trigger || origin.Policy != k.origin.Policy || origin.Rule != k.origin.Rule {
		return errNotOurs
	}
	if inspect.IsLeaving(object) {
		return ErrNotFound // as soon as its finalizers permit
	}
	e.there.remove(k.at) // so that the watch's deletion event does not restore it
	if err := e.options.Cluster.Delete(ctx, k.kind, object); err != nil {
		e.there.put(k.at, k.kind, k.origin)
		return err
	}
	return nil
}
