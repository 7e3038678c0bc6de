// Package deletions lists the objects of a cluster or of files that policies would delete at their next runs.
package deletions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/preview"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/extract"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

// deletionPage is the number of objects in one request. A page is in memory as JSON and decoded.
const deletionPage = 250

// lister lists the objects that policies would delete at their next runs.
type lister struct {
	cluster    scan.Cluster
	namespaces scan.Namespaces
	excluded   []string // patterns of namespaces
	decider    deletion.Decider
	rules      []deletionRule
	now        time.Time
	list       *preview.Preview
	// refused are the kinds that cannot be listed.
	refused []scan.RefusedKind
}

type deletionRule struct {
	policy *policy.Policy
	rule   policy.Deletion
	run    *preview.Run
}

// Options say what is listed; all but Excluded are required.
type Options struct {
	// Policies are the policies with their exceptions.
	Policies *set.Set
	// Limits are those of the gateway that runs them.
	Limits     preview.Limits
	Cluster    scan.Cluster
	Namespaces scan.Namespaces
	// Excluded are patterns of namespaces that are left out.
	Excluded []string
}

// List returns the next runs of the policies that delete, and the kinds that could not be listed;
// nil if there is no such policy.
func List(ctx context.Context, o Options) (*preview.Preview, []scan.RefusedKind, error) {
	now := time.Now()
	l := lister{
		cluster: o.Cluster, namespaces: o.Namespaces, excluded: o.Excluded, now: now, list: preview.New(o.Limits, now),
		decider: deletion.Decider{Protection: o.Limits.Protection, Exceptions: o.Policies.Exceptions()},
	}
	for _, p := range o.Policies.Policies() {
		for _, rule := range p.Deletions {
			l.rules = append(l.rules, deletionRule{p, rule, l.list.Rule(p, rule)})
		}
	}
	if len(l.rules) == 0 {
		return nil, nil, nil
	}
	served, err := o.Cluster.Kinds(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing what policies would delete: %w", err)
	}
	for i, kind := range served {
		// Of each resource the preferred version comes first; a rule reads its objects once.
		rules := slices.DeleteFunc(slices.Clone(l.rules), func(r deletionRule) bool {
			earlier := func(k scan.Kind) bool {
				return k.Group == kind.Group && k.Resource == kind.Resource && k.Kind == kind.Kind && r.means(k)
			}
			return !r.means(kind) || !kind.IsOfFiles && slices.ContainsFunc(served[:i], earlier)
		})
		if len(rules) == 0 {
			continue
		}
		if err := l.kind(ctx, kind, rules); err != nil {
			return nil, nil, fmt.Errorf("listing what policies would delete of %s: %w", kind, err)
		}
	}
	return l.list, l.refused, nil
}

// means reports whether a rule is about objects of a kind. Files have no discovery, and a rule may not
// know its kinds: it is asked about every object of theirs.
func (r deletionRule) means(k scan.Kind) bool {
	return k.IsOfFiles || slices.ContainsFunc(r.rule.Targets(), func(t policy.Target) bool {
		return t.Kind == k.Kind && wildcard.Match(t.Group, k.Group) && wildcard.Match(t.Version, k.Version)
	})
}

// kind lists the objects of one kind.
func (l *lister) kind(ctx context.Context, kind scan.Kind, rules []deletionRule) error {
	from := ""
	for {
		page, err := l.cluster.List(ctx, kind, from, deletionPage)
		expired, isExpired := errors.AsType[*scan.ExpiredError](err)
		switch {
		case errors.Is(err, scan.ErrRefused):
			l.refused = append(l.refused, scan.RefusedKind{Kind: kind, Err: err})
			return nil
		case isExpired && expired.Next != "":
			from = expired.Next
			continue
		case err != nil:
			return err
		}
		for _, object := range page.Objects {
			l.object(ctx, object, rules)
		}
		from = page.Continue
		if from == "" {
			return nil
		}
	}
}

// object decides about one object.
func (l *lister) object(ctx context.Context, object workload.Object, rules []deletionRule) {
	if object.IsDocument() || object.Namespace() != "" && wildcard.Any(l.excluded, object.Namespace()) {
		return
	}
	subject := policy.Subject{
		Object: policy.ContentFrom(object), Group: object.Group(), Version: object.Version(), Kind: object.Kind(),
		Namespace: object.Namespace(), Name: object.Name(), Time: l.now,
	}
	if subject.Namespace != "" {
		labels, err := l.namespaces.Labels(ctx, subject.Namespace)
		subject.NamespaceLabels, subject.NamespaceKnown = labels, err == nil
	}
	find := extract.Finder(func() (workload.Object, error) { return object, nil }, image.Parse)
	for _, r := range rules {
		decided := l.decider.Decide(ctx, r.policy, r.rule, policy.Case{Subject: &subject, Find: find})
		r.run.Add(preview.Object{Kind: object.Kind(), Namespace: object.Namespace(), Name: object.Name(), Source: object.Source()}, decided)
	}
}
