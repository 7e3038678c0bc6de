package background

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// inherit deals with what is there because of a trigger that is not any more: it goes,
// unless another trigger wants the very same.
func (l *look) inherit(ctx context.Context, set *policy.Set, k kept) {
	id := ruleID{k.origin.Policy, k.origin.Rule}
	if !k.origin.Synchronize {
		return // it was made once, and nobody's since
	}
	terms, known := termsOf(set, id)
	if known && !terms.Synchronize {
		return
	}
	if !known {
		if stays, err := l.outlives(ctx, set, k); err != nil || stays {
			if err != nil {
				l.failed(Work{Trigger: k.origin.Trigger, Policy: id.policy, Rule: id.rule, Object: k.at.String(), Err: err})
			}
			return
		}
	}
	if heirs := l.there.heirs(k.at); len(heirs) > 0 {
		for _, heir := range heirs {
			l.putBack(heir, k.origin)
		}
		l.again = true // none of them may want it any more
		return
	}
	l.drop(ctx, k)
}

// outlives reports whether an object whose rule is not known stays: the policy says
// so, or is there and cannot be asked. An error means that nobody can tell.
func (l *look) outlives(ctx context.Context, set *policy.Set, k kept) (bool, error) {
	for _, p := range set.Policies() {
		if p.ID() == k.origin.Policy {
			return p.Broken != nil || k.origin.Orphan, nil //nolint:nilerr // what breaks a policy is no error of this look
		}
	}
	gone, err := l.options.Policies.Gone(ctx, k.origin.Policy)
	if err != nil {
		return true, fmt.Errorf("find out whether the policy is gone: %w", err)
	}
	return !gone || k.origin.Orphan, nil
}

// termsOf returns what holds for the objects of a rule; false if there is none.
func termsOf(set *policy.Set, id ruleID) (policy.Terms, bool) {
	for _, p := range set.Policies() {
		if p.ID() != id.policy {
			continue
		}
		for _, g := range p.Generations {
			if g.Name() == id.rule {
				return g.Terms(), true
			}
		}
	}
	return policy.Terms{}, false
}

// sees reports whether a rule speaks of triggers in the version in which this one was
// read.
func (l *look) sees(set *policy.Set, id ruleID) bool {
	for _, p := range set.Policies() {
		for _, g := range p.Generations {
			if p.ID() == id.policy && g.Name() == id.rule {
				return slices.ContainsFunc(g.Targets(), func(t policy.Target) bool {
					return wildcard.Match(t.Version, versionOf(l.self.APIVersion)) && wildcard.Match(t.Group, l.at.group)
				})
			}
		}
	}
	return false
}

// retire deals with what is there because of the trigger and was not asked for just
// now.
func (l *look) retire(ctx context.Context, set *policy.Set, results map[ruleID]*generated, k kept) {
	id := ruleID{k.origin.Policy, k.origin.Rule}
	terms, known := termsOf(set, id)
	switch {
	case !k.origin.Synchronize:
		return
	case known && !l.sees(set, id):
		return // it speaks of another version of the trigger
	case known && !terms.Synchronize:
		return // the rule was changed: what it made is nobody's now
	case !known:
		stays, err := l.outlives(ctx, set, k)
		if err != nil {
			l.failed(Work{Policy: id.policy, Rule: id.rule, Object: k.at.String(), Err: err})
		}
		if err == nil && !stays {
			l.drop(ctx, k)
		}
		return
	}
	if r := results[id]; r != nil {
		undecided := r.Skip == "" && r.Ruling.Result != policy.Pass
		unasked := r.Skip == "" && (r.NeedsRequester && l.unknown != nil || l.depth >= maxDepth)
		if undecided || unasked || r.Exception != nil {
			return // whether it is to go, nobody knows; an exception leaves it as it is
		}
	}
	l.drop(ctx, k)
}

// drop deletes an object that is there because of a rule, if that is what it is.
func (l *look) drop(ctx context.Context, k kept) {
	err := l.dropNow(ctx, k)
	id := ruleID{k.origin.Policy, k.origin.Rule}
	switch {
	case errors.Is(err, ErrNotFound):
		l.there.remove(k.at)
	case errors.Is(err, errNotOurs):
		l.there.remove(k.at) // whoever changed it has made it theirs
	case err != nil:
		l.failed(Work{Trigger: k.origin.Trigger, Policy: id.policy, Rule: id.rule, Object: k.at.String(), Err: fmt.Errorf("delete: %w", err)})
	default:
		l.did(id, Deleted, k.at)
	}
}

// errNotOurs: an object is not there because of the rule and the trigger that it was
// there for.
var errNotOurs = errors.New("it is there for another reason")

func (l *look) dropNow(ctx context.Context, k kept) error {
	object, err := l.options.Cluster.Get(ctx, k.kind, k.at.namespace, k.at.name)
	if err != nil {
		return err
	}
	origin, err := l.options.Records.ReadOrigin(object)
	if err != nil || origin.Trigger != k.origin.Trigger || origin.Policy != k.origin.Policy || origin.Rule != k.origin.Rule {
		return errNotOurs
	}
	if leaving(object) {
		return ErrNotFound // as soon as its finalizers let it
	}
	l.there.remove(k.at) // its watch tells of it, and is not to have it put back
	if err := l.options.Cluster.Delete(ctx, k.kind, object); err != nil {
		l.there.put(k.at, k.kind, k.origin)
		return err
	}
	return nil
}
