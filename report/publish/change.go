package publish

import (
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// change is a pending change of one report.
type change struct {
	at    policyreport.Place
	items map[string]*item // by identity
	// policies, unless nil, are all existing policies: results of others are removed.
	policies []result.Policy

	// fresh: the scope of the report was just created, so no report exists yet.
	fresh bool

	first     time.Time // the start of the wait
	due       time.Time
	notBefore time.Time // after a failed attempt
	tries     int
	index     int // in the heap
}

func newChange(at policyreport.Place) *change { return &change{at: at, items: map[string]*item{}} }

// address names a report. Its scope may be written in several versions.
type address struct{ namespace, name string }

func (c *change) address() address { return address{c.at.Namespace, c.at.Name} }

// size is the number of results and their approximate size in bytes.
func (c *change) size() (results, bytes int) {
	bytes = changeCost + wordCost*len(c.policies)
	for _, i := range c.items {
		results += len(i.entries)
		bytes += i.bytes()
	}
	return results, bytes
}

// item returns the pending results of an object.
func (c *change) item(of report.Resource) *item {
	of.Owner = nil
	who := result.Result{Resource: of}.Key().Resource
	if c.items[who] == nil {
		c.items[who] = &item{of: of}
	}
	return c.items[who]
}

// join merges a later change.
func (c *change) join(later *change) {
	for _, each := range later.items {
		to := c.item(each.of)
		for _, s := range each.entries {
			to.add(s)
		}
		if each.whole.After(to.whole) {
			to.whole, to.others = each.whole, each.others
		}
		if each.gone.After(to.gone) {
			to.gone = each.gone
		}
	}
	if later.policies != nil {
		c.policies = later.policies
	}
}

// ends reports whether the report is deleted with its scope.
func (c *change) ends() bool {
	if c.at.Scope.Name == "" {
		return false
	}
	i := c.items[result.Result{Resource: c.at.Scope}.Key().Resource]
	return i != nil && !i.gone.IsZero()
}

// apply applies the change. Results of policies that a scan does not evaluate stay.
func (c *change) apply(to *policyreport.Report, unasked []result.Policy) {
	var all []result.Result
	for _, i := range c.items {
		all = append(all, i.results()...)
	}
	to.Merge(all) // all at once: the most frequent result becomes the shared one
	for _, i := range c.items {
		if !i.whole.IsZero() {
			to.ReplaceOthers(i.of, i.whole, i.results(), policyreport.Staying{Policies: unasked, Rules: i.others})
		}
		if !i.gone.IsZero() {
			to.Replace(i.of, i.gone, nil)
		}
	}
	if c.policies != nil {
		to.Keep(c.policies)
	}
}
