package policyreport

import (
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport/internal/merge"
	"github.com/quaymaster/quaymaster/report/result"
)

// Report is the content of one report, before it is split into objects. It is not safe for
// concurrent use.
type Report struct {
	place   Place
	content *merge.Content
	// read holds the parts as they were read.
	read []original
}

// New returns an empty report.
func New(at Place, show Selection) *Report {
	return &Report{place: at, content: merge.New(at.Scope, hasPods(at.Scope), show)}
}

// Place returns the report's place.
func (r *Report) Place() Place { return r.place }

// Merge merges results, and reports whether the visible content changed. A newer time, another
// process or another location of the evidence is not a visible change. Of two results with the
// same policy, rule, resource and container, the newer one is stored.
//
// Results of one call are merged in the order of their times. Merge is idempotent.
func (r *Report) Merge(results []result.Result) bool { return r.content.Merge(allBounded(results)) }

// Replace sets all results of an object at a time. It removes the object's earlier listed results
// that are not in results, except those of unasked policies. It returns the same as Merge. A
// shared result of pods stays, unless its rule no longer exists in the policy.
//
// A caller with the results of several objects passes all of them to Merge first, so that the
// most frequent result becomes the shared one.
func (r *Report) Replace(of report.Resource, at time.Time, results []result.Result, unasked ...result.Policy) bool {
	return r.ReplaceOthers(of, at, results, Staying{Policies: unasked})
}

// Staying are results that were not evaluated: of policies, and of single rules about the object
// itself.
type Staying struct {
	Policies []result.Policy
	Rules    []result.Rule
}

// ReplaceOthers is Replace for an evaluation that leaves out policies and single rules. The results of
// these stay.
func (r *Report) ReplaceOthers(of report.Resource, at time.Time, results []result.Result, staying Staying) bool {
	results = allBounded(results)
	changed := r.content.Merge(results)
	stays := merge.Staying{Policies: boundedPolicies(staying.Policies), Rules: boundedRules(staying.Rules)}
	return r.content.Drop(boundedResource(of), at, results, stays) || changed
}

// IsEmpty reports whether the report has no results, so that no object is stored.
func (r *Report) IsEmpty() bool { return r.content.IsEmpty() }

// ForgetResource removes the listed results of a deleted object, and reports whether there were
// any. A shared result of pods stays, since its other pods are unknown.
func (r *Report) ForgetResource(of report.Resource) bool {
	return r.content.Drop(boundedResource(of), time.Time{}, nil, merge.Staying{})
}

// Keep removes results of policies that are not in the list, overrides included
// (result.OverrideKind). Only kind, namespace and name are compared. It reports whether there
// were any.
func (r *Report) Keep(policies []result.Policy) bool {
	return r.content.Keep(boundedPolicies(policies))
}

// Resources returns the objects that the report lists by name, in no order. The caller removes
// deleted ones with ForgetResource.
func (r *Report) Resources() []report.Resource { return r.content.Resources() }
