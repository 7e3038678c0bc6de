package cleanup

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schedule"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// deletion is a policy.Deletion: a whole policy.
type deletion struct {
	schedule.Terms
	name       string
	namespace  string // of the policy; empty for one of the cluster
	selection  match.Selection
	targets    []policy.Target
	entries    rulecontext.Entries
	conditions *condition.Conditions // nil for none
}

var _ policy.Deletion = (*deletion)(nil)

// Name returns the policy's name.
func (d *deletion) Name() string { return d.name }

// Targets returns the kinds that the policy matches.
func (d *deletion) Targets() []policy.Target { return d.targets }

// Labels returns none: a selector may have wildcards, which the API server does not support.
func (*deletion) Labels() string { return "" }

// Decide evaluates match and exclude, and the conditions if the policy matches. An object is deleted
// only if each of them is certain.
func (d *deletion) Decide(ctx context.Context, about policy.Case) policy.DeletionDecision {
	s := *about.Subject
	// No request brings a stored object.
	s.Operation, s.User, s.Request, s.OldObject = "CREATE", policy.User{}, policy.Request{}, policy.Content{}
	if !d.concerns(&s) {
		return policy.DeletionDecision{}
	}
	matched := d.selection.Match.Matches(&s, match.Excluding)
	excluded := d.selection.Exclude.Matches(&s, match.Selecting)
	switch {
	case matched.False(), excluded.True():
		return policy.DeletionDecision{}
	case matched.Cause() != nil:
		return undecided(field.Below("spec.match", matched.Cause()))
	case excluded.Cause() != nil:
		return undecided(field.Below("spec.exclude", excluded.Cause()))
	case d.conditions == nil:
		return policy.DeletionDecision{Result: policy.Pass}
	}
	const path = "spec.conditions"
	held, err := d.conditions.Evaluate(d.data(ctx, &s, about.Find))
	switch {
	case err != nil:
		return undecided(field.Below(path, err))
	case held.Indeterminate:
		return undecided(field.Below(path, held.Cause()))
	case !held.Held:
		return policy.DeletionDecision{Result: policy.Skipped, Reasons: []policy.Reason{{
			Code: policy.SkippedByPolicy, Path: path, Message: "conditions not met: " + held.Words(),
		}}}
	}
	return policy.DeletionDecision{Result: policy.Pass}
}

// concerns reports whether a subject of this sort may be selected at all.
func (d *deletion) concerns(s *policy.Subject) bool {
	return !s.Object.IsZero() && !s.Document && !s.Bare && s.Subresource == "" && (d.namespace == "" || s.Home() == d.namespace) &&
		slices.ContainsFunc(d.targets, func(t policy.Target) bool { return t.Means(s) })
}

// data are the values of variables. Of the request there is the namespace alone, as in Kyverno.
func (d *deletion) data(ctx context.Context, s *policy.Subject, find policy.Finder) variable.Context {
	data := rulecontext.Entries{}.Context(ctx, rulecontext.Source{Subject: s, Images: func() ([]policy.Image, error) {
		if find == nil {
			return nil, nil
		}
		return find(nil)
	}})
	delete(data, "serviceAccountName")
	delete(data, "serviceAccountNamespace")
	data["request"] = map[string]any{"namespace": s.Namespace}
	data["target"] = s.Object.Map()
	d.entries.Add(ctx, data)
	return data
}

func undecided(err error) policy.DeletionDecision {
	return policy.DeletionDecision{Result: policy.Indeterminate, Reasons: []policy.Reason{rule.ReasonOf(err)}}
}
