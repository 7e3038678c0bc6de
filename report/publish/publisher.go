package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// Options are the dependencies of a Publisher.
type Options struct {
	// Stores are the stores of reports, by API; at least one.
	Stores map[policyreport.API]Store
	// Workloads is required where the grouping is by workload.
	Workloads Workloads
	// Grouping assigns results to reports; empty means by workload.
	Grouping policyreport.Grouping
	// Selection selects the results with an entry.
	Selection policyreport.Selection
	// Limits bound the parts of a report.
	Limits policyreport.Limits
	// Unasked returns the policies that a scan currently does not evaluate. Their results from
	// admission stay. Nil means that a scan evaluates all.
	Unasked func() []result.Policy
	// Others returns the rules about other objects that may have results for an object. A scan does not
	// evaluate them, so that these results stay. Nil means that there are none.
	Others func(of *policy.Subject) []result.Rule
	// Observer is required.
	Observer Observer
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Observer receives the events of a Publisher, concurrently.
type Observer interface {
	// Wrote reports the outcome of one write.
	Wrote(what Written)
	// Dropped reports results that are not in a report, or decisions on so many objects, with the
	// reason.
	Dropped(why Drop, count int)
	// Failed reports an error, whether it is retried or not.
	Failed(err error)
	// Served reports changes of whether the API server serves an API of reports.
	Served(api policyreport.API, served bool)
}

// Written is the outcome of a write.
type Written string

// The outcomes of writes.
const (
	// Changed: it was written.
	Changed Written = "changed"
	// Unchanged: the report was already up to date.
	Unchanged Written = "unchanged"
	// Conflicted: another writer changed it, and it was merged again.
	Conflicted Written = "conflict"
	// Retried: the write failed, and is retried later.
	Retried Written = "retry"
)

// Drop is the reason why a result is not in a report.
type Drop string

// The reasons.
const (
	// Outdated: the queue was full, and held a newer decision on the same object.
	Outdated Drop = "outdated"
	// Full: the queue was full without outdated decisions. The next scan restores the result.
	Full Drop = "full"
	// NotServed: the API server does not serve such reports.
	NotServed Drop = "not-served"
	// Rejected: the API server rejected the report, or all attempts failed.
	Rejected Drop = "rejected"
)

// Publisher writes the results of decisions to reports. It is a report.Sink, safe for concurrent
// use. Create one with New.
type Publisher struct {
	options Options
	queue   *queue
	pending *pending
	shelves []*shelf
	memory  *cache.Cache[place, remembered]
}

// New creates a Publisher, and rejects invalid options.
func New(o Options) (*Publisher, error) {
	o.Grouping = cmp.Or(o.Grouping, policyreport.ByWorkload)
	if len(o.Stores) == 0 || o.Observer == nil || o.Grouping == policyreport.ByWorkload && o.Workloads == nil {
		return nil, errors.New("reports: Stores and Observer are required, and Workloads for reports by workload")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Others == nil {
		o.Others = func(*policy.Subject) []result.Rule { return nil }
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

// Take implements report.Sink. It uses decisions that leave an object in the cluster, or delete
// one.
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

// Pending is the number of results that are not written yet.
func (p *Publisher) Pending() int64 {
	results, _ := p.pending.size()
	return int64(results)
}

// Busy reports whether the backlog is so large that callers that can wait, such as a scan,
// should.
func (p *Publisher) Busy() bool {
	_, bytes := p.pending.size()
	return bytes > maxPending/2 || p.queue.size() > maxQueue/2
}

// Run writes until ctx ends, and then the pending changes, for at most drainTimeout.
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

// takeIn converts decisions to results until ctx ends, and then the rest of the queue.
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
