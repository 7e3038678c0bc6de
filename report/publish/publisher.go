package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// Options are what a Publisher needs.
type Options struct {
	// Stores are where reports are kept, by API; at least one.
	Stores map[policyreport.API]Store
	// Workloads is required where the grouping is by workload.
	Workloads Workloads
	// Grouping says which results stand in one report; empty means by workload.
	Grouping policyreport.Grouping
	// Selection says which results a report shows.
	Selection policyreport.Selection
	// Limits bound the parts of a report.
	Limits policyreport.Limits
	// Unasked are the policies that a scan does not ask, at the moment: what admission
	// says of them stays. Nil means that a scan asks all.
	Unasked func() []result.Policy
	// Observer is required.
	Observer Observer
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Observer is told how the writing goes, from several goroutines.
type Observer interface {
	// Wrote says what became of one report.
	Wrote(what Written)
	// Dropped says why so many results, or what was decided about so many objects, are
	// not in a report.
	Dropped(why Drop, count int)
	// Failed is told what is tried again, and what is not.
	Failed(err error)
	// Served says, when that changes, whether the API server knows reports of an API.
	Served(api policyreport.API, served bool)
}

// Written is what became of a report that was to be changed.
type Written string

// What becomes of reports.
const (
	// Changed: it was written.
	Changed Written = "changed"
	// Unchanged: it said so already.
	Unchanged Written = "unchanged"
	// Conflicted: somebody else had written it, and it was merged again.
	Conflicted Written = "conflict"
	// Retried: it could not be written, and is tried again later.
	Retried Written = "retry"
)

// Drop is why something does not get into a report.
type Drop string

// The reasons.
const (
	// Outdated: the queue was full, and something newer about the object waited, too.
	Outdated Drop = "outdated"
	// Full: the queue was full of last words. The next scan brings it back.
	Full Drop = "full"
	// NotServed: the API server does not know such reports.
	NotServed Drop = "not-served"
	// Rejected: the API server does not take it, or never did in all tries.
	Rejected Drop = "rejected"
)

// Publisher writes reports of what was decided. It is a report.Sink, safe for
// concurrent use. Make one with New.
type Publisher struct {
	options Options
	queue   *queue
	pending *pending
	shelves []*shelf
	memory  *cache.Cache[place, remembered]
}

// New makes a Publisher; it refuses options that mean nothing.
func New(o Options) (*Publisher, error) {
	o.Grouping = cmp.Or(o.Grouping, policyreport.ByWorkload)
	if len(o.Stores) == 0 || o.Observer == nil || o.Grouping == policyreport.ByWorkload && o.Workloads == nil {
		return nil, errors.New("reports: a store and an observer are required, and by workload who knows workloads")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Unasked == nil {
		o.Unasked = func() []result.Policy { return nil }
	}
	memory, err := cache.New(cache.Options[place, remembered]{
		MaxCost: maxRemembered, MaxTTL: rememberedAge, Cost: func(_ place, r remembered) int { return r.cost() }, Now: o.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("reports: %w", err)
	}
	p := &Publisher{options: o, queue: newQueue(maxQueue), pending: newPending(maxPending, o.Now), memory: memory}
	for api, store := range o.Stores {
		p.shelves = append(p.shelves, &shelf{api: api, store: store})
	}
	return p, nil
}

// Take implements report.Sink: what leaves an object that is there, or takes one away.
func (p *Publisher) Take(d report.Decided) {
	if !p.wants(d) {
		return
	}
	if p.allAbsent() {
		p.options.Observer.Dropped(NotServed, 1)
		return
	}
	outdated, refused := p.queue.add(d)
	if outdated {
		p.options.Observer.Dropped(Outdated, 1)
	}
	if refused {
		p.options.Observer.Dropped(Full, 1)
	}
}

// Pending is how many results wait to be written.
func (p *Publisher) Pending() int64 {
	results, _ := p.pending.size()
	return int64(results)
}

// Busy reports whether so much waits that who can wait, as a scan, is to do so.
func (p *Publisher) Busy() bool {
	_, bytes := p.pending.size()
	return bytes > maxPending/2 || p.queue.size() > maxQueue/2
}

// Run writes until ctx ends, and then what waits, for as long as drainTimeout.
func (p *Publisher) Run(ctx context.Context) {
	defer p.memory.Close()
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var taking, writing sync.WaitGroup
	taking.Go(func() { p.takeIn(ctx, last) })
	for range workers {
		writing.Go(func() { p.write(last) })
	}
	<-ctx.Done()
	timer := time.AfterFunc(drainTimeout, stop)
	defer timer.Stop()
	taking.Wait()
	p.pending.drain()
	p.pending.awaitIdle(last)
	stop()
	writing.Wait()
}

// takeIn puts what was decided into words until ctx ends, and then what is left.
func (p *Publisher) takeIn(ctx, last context.Context) {
	for {
		d, ok := p.queue.next()
		if ok {
			if err := p.sort(last, d, true); err != nil {
				p.options.Observer.Failed(err)
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-p.queue.wake:
		}
	}
}
