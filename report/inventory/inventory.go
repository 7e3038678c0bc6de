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
)

// Options are what an Inventory needs.
type Options struct {
	// Replica names the process; required.
	Replica string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Inventory is a report.Sink. It is safe for concurrent use. Make one with New, and
// Run it.
type Inventory struct {
	replica string
	now     func() time.Time
	since   time.Time
	waiting chan told
	room    *report.Room
	dropped atomic.Int64

	mu        sync.RWMutex
	images    map[string]*entry // by ID
	order     *list.List        // of *entry that something ran once, seen last first
	strange   *list.List        // of the others
	places    map[place]map[*entry]struct{}
	uses      int
	lone      lone
	evidence  int // bytes
	packer    *evidence.Packer
	policies  map[string]*policyCount
	decisions ring
	refusals  ring
	history   history
	scanned   time.Time
	heard     int64     // how much was dropped when a scan last passed
	swept     time.Time // when what is a week old was last looked for
}

// New makes an empty Inventory.
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
		packer: packer, replica: o.Replica, now: o.Now, since: o.Now(), waiting: make(chan told, maxWaiting), room: report.NewRoom(maxHeld),
		images: map[string]*entry{}, order: list.New(), strange: list.New(), lone: newLone(), places: map[place]map[*entry]struct{}{}, policies: map[string]*policyCount{},
	}, nil
}

// told is what waits to be taken in: what was decided, or how far a scan came.
type told struct {
	decided report.Decided
	pass    *pass
}

// pass is that a scan saw every object of a kind.
type pass struct {
	apiVersion, kind string
	began            time.Time
	leftOut          func(namespace string) bool
}

// Take implements report.Sink. What comes when too much is waiting is left out.
func (i *Inventory) Take(d report.Decided) {
	if d.Occasion.DryRun { // as Add; it need not wait for that
		return
	}
	if !i.room.Enter(d) {
		i.dropped.Add(1)
		return
	}
	select {
	case i.waiting <- told{decided: d}:
	default:
		i.room.Leave(d)
		i.dropped.Add(1)
	}
}

// Passed says that a scan, which began then, has handed over every object of a kind that
// there is: those that were not seen since are gone. It says nothing of namespaces that
// it left out; nil means none.
func (i *Inventory) Passed(apiVersion, kind string, began time.Time, leftOut func(namespace string) bool) {
	if leftOut == nil {
		leftOut = func(string) bool { return false }
	}
	select {
	case i.waiting <- told{pass: &pass{apiVersion, kind, began, leftOut}}: // in its turn, after what it is about
	default: // the next one says so again
	}
}

// Dropped returns how many decisions were left out.
func (i *Inventory) Dropped() int64 { return i.dropped.Load() }

// Run takes in what was handed over until ctx ends.
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

// take takes in what waited. What it cannot read for a defect is left out, and counted:
// nobody but the dashboard needs it.
func (i *Inventory) take(next told) {
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
	defer i.room.Leave(d)
	i.Add(d.Occasion, recordOf(d), d.Resource())
}

// recordOf returns the record; of what nobody decided, none.
func recordOf(d report.Decided) report.Record {
	if d.Occasion.Undecided != "" {
		return report.Record{}
	}
	return report.NewRecord(d.Outcome)
}

// Add takes one record in at once: what a worker does with what was taken, and how a
// process that begins is given what a decision log remembers. Records come in the order
// of their times; one that is older than a week, or of a dry run, of which nothing comes,
// is left out.
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
		i.decisions.add(made)
		if made.Verdict == Denied || made.Verdict == Unable {
			i.refusals.add(made)
		}
		i.history.count(o.Time, made.Verdict)
	}
	if o.Undecided != "" {
		return
	}
	i.countPolicies(o, r)
	i.see(o, r, about)
	i.forget(now)
}

// About says whose inventory it is.
func (i *Inventory) About() About {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return About{Replica: i.replica, Since: i.since.UTC(), Dropped: i.dropped.Load(), Scanned: i.scanned}
}
