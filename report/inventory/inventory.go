package inventory

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/evidence"
	"github.com/quaymaster/quaymaster/report/inventory/internal/policycount"
)

// Options are the dependencies of an Inventory.
type Options struct {
	// Replica identifies the process; required.
	Replica string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Restores: the decisions from before a restart are added from a decision log.
	Restores bool
}

// Inventory is a report.Sink. It is safe for concurrent use. Create one with New, and Run it.
type Inventory struct {
	options Options
	since   time.Time
	waiting chan queued
	memory  *report.MemoryLimit
	dropped atomic.Int64

	mu            sync.RWMutex
	images        map[string]*entry // by ID
	order         *list.List        // of *entry that a workload ran, most recently seen last
	unused        *list.List        // of all others
	places        map[place]map[*entry]struct{}
	uses          int
	barePods      barePods
	evidence      int // bytes
	packer        *evidence.Packer
	policies      policycount.Counts
	recent        recent
	history       history
	scanned       time.Time
	droppedAtScan int64     // the number of dropped decisions at the end of the last scan
	swept         time.Time // the time of the last eviction by age
}

// New creates an empty Inventory.
func New(o Options) (*Inventory, error) {
	if o.Replica == "" {
		return nil, errors.New("inventory: want the name of the process")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	packer, err := evidence.NewPacker()
	if err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	return &Inventory{
		packer: packer, options: o, since: o.Now(), waiting: make(chan queued, maxWaiting), memory: report.NewMemoryLimit(maxHeld),
		images: map[string]*entry{}, order: list.New(), unused: list.New(), barePods: newBarePods(),
		places: map[place]map[*entry]struct{}{}, policies: policycount.New(), history: newHistory(),
	}, nil
}

// An element of the queue: a decision, or the end of a scan.
type queued struct {
	decided report.Decided
	pass    *pass
}

// pass is a finished scan of all objects of a kind.
type pass struct {
	apiVersion, kind string
	began            time.Time
	leftOut          func(namespace string) bool
}

// Take implements report.Sink. It drops decisions while the queue is full.
func (i *Inventory) Take(d report.Decided) {
	if d.Occasion.DryRun { // as in Add, but without the queue
		return
	}
	if !i.memory.Reserve(d) {
		i.dropped.Add(1)
		return
	}
	select {
	case i.waiting <- queued{decided: d}:
	default:
		i.memory.Release(d)
		i.dropped.Add(1)
	}
}

// Passed reports that a scan with this start time has visited every object of a kind. Objects
// that were not seen since are removed, except in the namespaces that it left out; nil means
// none.
func (i *Inventory) Passed(apiVersion, kind string, began time.Time, leftOut func(namespace string) bool) {
	if leftOut == nil {
		leftOut = func(string) bool { return false }
	}
	select {
	case i.waiting <- queued{pass: &pass{apiVersion, kind, began, leftOut}}: // queued after the scan's decisions
	default: // the next scan reports it again
	}
}

// Dropped counts the dropped decisions.
func (i *Inventory) Dropped() int64 { return i.dropped.Load() }

// Run processes the queue until ctx ends.
func (i *Inventory) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-i.waiting:
			i.take(next)
		}
	}
}

// take processes one element. A record that causes a panic is dropped and counted, since only the
// dashboard needs it.
func (i *Inventory) take(next queued) {
	defer func() {
		if recover() != nil {
			i.dropped.Add(1)
		}
	}()
	if next.pass != nil {
		i.clear(*next.pass)
		return
	}
	d := next.decided
	defer i.memory.Release(d)
	i.Add(d.Occasion, recordOf(d), d.Resource())
}

// recordOf returns the record; an undecided request has none.
func recordOf(d report.Decided) report.Record {
	if d.Occasion.Undecided != "" {
		return report.Record{}
	}
	return report.NewRecord(d.Outcome)
}

// Add adds one record synchronously. The worker uses it for queued decisions, and the startup for
// the records of the decision log. Records must come in the order of their times. Records older
// than a week and those of dry runs, which persist nothing, are ignored.
func (i *Inventory) Add(o report.Occasion, r report.Record, about report.Resource) {
	now := i.now()
	if o.Time.IsZero() {
		o.Time = now
	}
	if o.DryRun || now.Sub(o.Time) > Keep {
		return
	}
	made := newDecision(o, r, about)
	i.mu.Lock()
	defer i.mu.Unlock()
	if o.Time.Before(i.since) {
		i.since = o.Time
	}
	if o.Process == report.ProcessScan {
		i.scanned = o.Time
	} else {
		decided := kept{Decision: made}
		if o.Undecided == "" {
			decided.proof = i.packer.PackObject(r, maxDecided)
		}
		i.recent.add(decided)
		i.history.count(o.Time, made.Verdict)
	}
	if o.Undecided != "" {
		return
	}
	i.policies.Add(o, r)
	i.see(o, r, about)
	i.evict(now)
}

// About describes the inventory's origin.
func (i *Inventory) About() About {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return About{Replica: i.options.Replica, Since: i.since.UTC(), Restores: i.options.Restores, Dropped: i.dropped.Load(), Scanned: i.scanned}
}

func (i *Inventory) now() time.Time { return i.options.Now() }
