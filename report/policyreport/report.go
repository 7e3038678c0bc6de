package policyreport

import (
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// Report is what one report says, before it is split into objects. It is not for use by
// several goroutines at once.
type Report struct {
	place Place
	show  Selection
	// pods: a word without a resource is that of the scope's pods, not the scope's.
	pods  bool
	lines map[line]*said
	// unlisted are the words that have no entry, by what is kept of their names.
	unlisted map[token]result.Status
	// read is what the parts were when they were read, by their names.
	read []original
}

// New returns a report that says nothing.
func New(at Place, show Selection) *Report {
	return &Report{place: at, show: show, pods: hasPods(at.Scope), lines: map[line]*said{}, unlisted: map[token]result.Status{}}
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
func (r *Report) Merge(results []result.Result) bool { return r.merge(results) }

// Replace takes in all that there is to say about an object at a time: what the report
// lists of it from before, and that is not among the results, goes, but for what
// policies say that were not asked. It reports as Merge does. A shared word of pods
// stays, unless it is of a rule that a policy has no more.
//
// Whoever has the words of several objects gives all of them to Merge first, which makes
// what most of them say the shared word.
func (r *Report) Replace(of report.Resource, at time.Time, results []result.Result, unasked ...result.Policy) bool {
	changed := r.merge(results)
	return r.drop(of, at, results, unasked...) || changed
}
