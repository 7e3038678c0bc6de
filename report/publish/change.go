package publish

import (
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// change is what is to become of one report.
type change struct {
	at    policyreport.Place
	items map[string]*item // by identity
	// policies, unless nil, are all that there are: what others say goes.
	policies []result.Policy

	// fresh: what the report is about was created just now, and nobody has written one.
	fresh bool

	first     time.Time // when it began to wait
	due       time.Time
	notBefore time.Time // after a try that failed
	tries     int
	index     int // in the heap
}

func newChange(at policyreport.Place) *change { return &change{at: at, items: map[string]*item{}} }

// address names a report; its scope may be written in several versions.
type address struct{ namespace, name string }

func (c *change) address() address { return address{c.at.Namespace, c.at.Name} }

// size is how many results it holds, and about how many bytes.
func (c *change) size() (results, bytes int) {
	bytes = changeCost + wordCost*len(c.policies)
	for _, i := range c.items {
		results += len(i.words)
		bytes += i.bytes()
	}
	return results, bytes
}

// item returns what is to be said of an object.
func (c *change) item(of report.Resource) *item {
	of.Owner = nil
	who := result.Result{Resource: of}.Key().Resource
	if c.items[who] == nil {
		c.items[who] = &item{of: of}
	}
	return c.items[who]
}

// join adds what a later one says.
func (c *change) join(later *change) {
	for _, each := range later.items {
		to := c.item(each.of)
		for _, s := range each.words {
			to.say(s)
		}
		if each.whole.After(to.whole) {
			to.whole = each.whole
		}
		if each.gone.After(to.gone) {
			to.gone = each.gone
		}
	}
	if later.policies != nil {
		c.policies = later.policies
	}
}

// ends reports whether the report goes with what it is about.
func (c *change) ends() bool {
	if c.at.Scope.Name == "" {
		return false
	}
	i := c.items[result.Result{Resource: c.at.Scope}.Key().Resource]
	return i != nil && !i.gone.IsZero()
}

// apply makes the change. What policies say that a scan does not ask stays.
func (c *change) apply(to *policyreport.Report, unasked []result.Policy) {
	var all []result.Result
	for _, i := range c.items {
		all = append(all, i.results()...)
	}
	to.Merge(all) // all at once: what most pods say is what is said of all
	for _, i := range c.items {
		if !i.whole.IsZero() {
			to.Replace(i.of, i.whole, i.results(), unasked...)
		}
		if !i.gone.IsZero() {
			to.Replace(i.of, i.gone, nil)
		}
	}
	if c.policies != nil {
		to.Keep(c.policies)
	}
}
