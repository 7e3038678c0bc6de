package policyreport

import (
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport/internal/merge"
	"github.com/quaymaster/quaymaster/report/result"
)

// Report is what one report says, before it is split into objects. It is not for use by
// several goroutines at once.
type Report struct {
	place Place
	said  *merge.Words
	// read is what the parts were when they were read, by their names.
	read []original
}

// New returns a report that says nothing.
func New(at Place, show Selection) *Report {
	return &Report{place: at, said: merge.New(at.Scope, hasPods(at.Scope), show)}
}

// Place returns where it is.
func (r *Report) Place() Place { return r.place }

// Merge takes results in, and reports whether anything changed that a reader sees: a
// newer time alone does not, nor does the process that came to it or the place where the
// evidence was found. Of two results with the same policy, rule, resource and container,
// the newer one holds.
//
// Results that are given together are taken by their time. Merging the same again
// changes nothing.
func (r *Report) Merge(results []result.Result) bool { return r.said.Merge(allWorded(results)) }

// Replace takes in all that there is to say about an object at a time: what the report
// lists of it from before, and that is not among the results, goes, but for what
// policies say that were not asked. It reports as Merge does. A shared word of pods
// stays, unless it is of a rule that a policy has no more.
//
// Whoever has the words of several objects gives all of them to Merge first, which makes
// what most of them say the shared word.
func (r *Report) Replace(of report.Resource, at time.Time, results []result.Result, unasked ...result.Policy) bool {
	results = allWorded(results)
	changed := r.said.Merge(results)
	return r.said.Drop(resourceWorded(of), at, results, policiesWorded(unasked)...) || changed
}

// IsEmpty reports whether the report says nothing, so that there is none.
func (r *Report) IsEmpty() bool { return r.said.IsEmpty() }

// ForgetResource removes what is listed of an object that is gone, and reports whether
// there was anything. A shared word of pods stays: nobody knows who else said it.
func (r *Report) ForgetResource(of report.Resource) bool {
	return r.said.Drop(resourceWorded(of), time.Time{}, nil)
}

// Keep removes what policies say that are not among those there are, overrides included
// (result.OverrideKind). Only kind, namespace and name count. It reports whether there
// was anything.
func (r *Report) Keep(policies []result.Policy) bool { return r.said.Keep(policiesWorded(policies)) }

// Resources returns the objects that the report lists by name, in no order. Whoever has
// seen that one is gone calls ForgetResource.
func (r *Report) Resources() []report.Resource { return r.said.Resources() }
