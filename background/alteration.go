package background

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/outcome"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/set"
)

// maxAttempts bounds the immediate attempts for a target that changes concurrently.
const maxAttempts = 3

// alteration changes the targets of a mutate-existing rule for the trigger.
type alteration struct {
	*evaluation
	rule *set.AlterResult
	made *outcome.Altered
}

// alter applies the alterations of the trigger to their targets.
func (e *evaluation) alter(ctx context.Context, set *set.Set) {
	if e.work.Cause&(queue.Came|queue.Changed|queue.Listed|queue.Deleted) == 0 {
		return
	}
	s := e.subject(ctx, e.operations()[0])
	if e.work.Cause&(queue.Came|queue.Changed|queue.Deleted) == 0 && e.at.Subresource == "" && !e.isNew() {
		s.Operation = opUpdate
	}
	results := set.Alterations(ctx, &s, e.finder(&s))
	for i := range results {
		r := &results[i]
		alteration := alteration{evaluation: e, rule: r, made: &outcome.Altered{}}
		about := Work{Policy: r.Policy.ID(), Rule: r.Rule}
		switch {
		case !alteration.calls() || r.SkipGenerated && e.depth > 0:
		case r.Skip != "":
			report(ctx, e, e.object, r.RuleResult)
		case r.NeedsRequester && e.unknown != nil:
			about.Err, about.Final = e.noRequester(), true
			e.failed(about)
			report(ctx, e, e.object, outcome.Failed(r.RuleResult, about.Err))
		case r.Ruling.Result != policy.Pass:
			about.Err = why(r.Ruling)
			e.failed(about)
			report(ctx, e, e.object, outcome.Failed(r.RuleResult, about.Err))
		default:
			for _, by := range r.Selections {
				if err := alteration.alterAll(ctx, by); err != nil {
					about.Err = err
					alteration.made.Fail(err, e.failed(about))
				}
			}
			alteration.made.Each(e.at.String(), e.object, r.RuleResult, func(object map[string]any, is policy.RuleResult) { report(ctx, e, object, is) })
		}
	}
}

// isNew reports whether an existing trigger was created after the recorded progress.
func (e *evaluation) isNew() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !inspect.CreatedAt(e.object).Before(e.progress.Until.Truncate(time.Second))
}

// calls reports whether the event of the trigger requires an alteration.
func (a alteration) calls() bool {
	switch {
	case a.work.Cause&(queue.Came|queue.Changed|queue.Deleted) != 0:
		return true
	case a.rule.OnPolicyChange && a.work.Rules[queue.RuleID{Policy: a.rule.Policy.ID(), Rule: a.rule.Rule}]:
		return true
	}
	return a.happened(a.rule.Policy, a.rule.Rule)
}

// alterAll changes the objects that a selection matches.
func (a alteration) alterAll(ctx context.Context, by policy.Selection) error {
	kind, err := a.options.Cluster.Kind(ctx, policy.ObjectKind{APIVersion: by.APIVersion, Kind: by.Kind})
	if err != nil {
		return fmt.Errorf("find %s %s: %w", by.APIVersion, by.Kind, err)
	}
	if !kind.Namespaced && by.Namespace != "" {
		return fmt.Errorf("targets of kind %s are in no namespace, and the rule names one", by.Kind)
	}
	id, count := queue.RuleID{Policy: a.rule.Policy.ID(), Rule: a.rule.Rule}, 0
	do := func(target map[string]any) error {
		is, err := a.chooses(ctx, by, target)
		if !is || err != nil {
			return err
		}
		count++
		if count > maxTargets {
			return fmt.Errorf("more than %d targets: let the rule select fewer", maxTargets)
		}
		at := queue.KeyOf(inspect.Identity(target))
		mutated, altered, err := a.alterOne(ctx, by, kind, target)
		reported := true
		switch {
		case err != nil: // continue with the others
			reported = a.failed(Work{Policy: id.Policy, Rule: id.Rule, Object: at.String(), Err: err})
		case altered:
			a.did(id, Altered, at)
		}
		a.made.Target(at.String(), target, mutated, err, reported)
		return ctx.Err()
	}
	namespace := by.Namespace
	if wildcard.Contains(namespace) {
		namespace = ""
	}
	if by.Name != "" && !wildcard.Contains(by.Name) && (namespace != "" || !kind.Namespaced) {
		target, err := a.options.Cluster.Get(ctx, kind, namespace, by.Name)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the target: %w", err)
		}
		return do(target)
	}
	if err := a.options.Cluster.Each(ctx, kind, namespace, by.Query, do); err != nil {
		return fmt.Errorf("list the targets: %w", err)
	}
	return nil
}

// chooses reports whether a selection matches an object and its namespace.
func (a alteration) chooses(ctx context.Context, by policy.Selection, target map[string]any) (bool, error) {
	if !chosen(by, target) {
		return false, nil
	}
	t := inspect.Identity(target)
	switch {
	case by.Namespaces == nil:
		return true, nil
	case t.Kind == "Namespace" && t.APIVersion == "v1":
		return by.Namespaces.Matches(inspect.Labels(target)), nil
	case t.Namespace == "":
		return true, nil
	}
	labels, err := a.options.Namespaces.Labels(ctx, t.Namespace)
	if err != nil {
		return false, fmt.Errorf("read the labels of namespace %s: %w", t.Namespace, err)
	}
	return by.Namespaces.Matches(labels), nil
}

// chosen reports whether a selection matches an object, its namespace apart.
func chosen(by policy.Selection, target map[string]any) bool {
	metadata := inspect.Metadata(target)
	if by.Name != "" && !wildcard.Match(by.Name, inspect.Text(metadata, "name")) ||
		by.Namespace != "" && !wildcard.Match(by.Namespace, inspect.Text(metadata, "namespace")) || inspect.IsLeaving(target) {
		return false
	}
	return by.Labels == nil || by.Labels.Matches(inspect.Labels(target))
}

// alterOne changes one object. It returns the result of the rule, which is empty if the object is no
// target any more, and whether there was a change.
func (a alteration) alterOne(ctx context.Context, by policy.Selection, kind Kind, target map[string]any) (policy.Mutated, bool, error) {
	for attempt := 1; ; attempt++ {
		mutated := a.rule.Alter(ctx, by, target)
		switch {
		case mutated.Result == policy.Indeterminate:
			return mutated, false, why(policy.Ruling{Reasons: mutated.Reasons})
		case mutated.Result != policy.Pass || mutated.Object == nil:
			return mutated, false, nil
		}
		operations := patch.Diff(target, mutated.Object)
		if len(operations) == 0 {
			return mutated, false, nil
		}
		t := inspect.Identity(target)
		if err := a.limiter.Allow(queue.KeyOf(t)); err != nil {
			return mutated, false, err
		}
		// The API server rejects the patch if the object has another resourceVersion.
		version := patch.Operation{Op: "replace", Path: "/metadata/resourceVersion", Value: inspect.Metadata(target)["resourceVersion"]}
		err := a.options.Cluster.Patch(ctx, kind, t.Namespace, t.Name, append([]patch.Operation{version}, operations...))
		switch {
		case errors.Is(err, ErrNotFound):
			return policy.Mutated{}, false, nil
		case err == nil:
			return mutated, true, nil
		case !errors.Is(err, ErrConflict) || attempt == maxAttempts:
			return mutated, false, fmt.Errorf("change the target: %w", err)
		}
		target, err = a.options.Cluster.Get(ctx, kind, t.Namespace, t.Name)
		if err != nil {
			if errors.Is(err, ErrNotFound) {
				return policy.Mutated{}, false, nil
			}
			return mutated, false, fmt.Errorf("read the target again: %w", err)
		}
		if is, err := a.chooses(ctx, by, target); !is || err != nil {
			return policy.Mutated{}, false, err
		}
	}
}
