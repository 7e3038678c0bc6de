package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/policy/wildcard"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	// workers is how many objects are looked at at once: one whose registry is slow holds
	// up few others.
	workers = 4
	// MaxWaiting bounds the objects that wait to be looked at. At the scan's usual ten
	// requests a second they take less than two minutes, and a list has as many in four.
	MaxWaiting = 1_000
	// firstPause and longestPause are between two tries, which double; a watch that ended
	// sooner than firstPause is tried as one that failed.
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// Change is what a watch tells of an object.
type Change struct {
	Namespace, Name, UID string
	// Mark stands for what is known of the object's content without reading it: of two
	// changes with the same mark the second changed nothing that policies see. 0 means
	// that nobody can tell.
	Mark uint64
	// Gone: it is not there any more.
	Gone bool
}

// Cluster tells what changes, and shows objects.
type Cluster interface {
	// Watch tells of the changes of a kind since a version, until ctx ends or the API
	// server has had enough, and returns the version from which on to go on. A version
	// of which the API server knows no more is a *scan.ExpiredError, and a watch that is
	// not allowed a scan.ErrRefused.
	Watch(ctx context.Context, kind scan.Kind, since string, tell func(Change)) (string, error)
	// Get returns an object: ErrGone where there is none, ErrUnreadable where it is none
	// that could be looked at, and scan.ErrRefused where it may not be seen.
	Get(ctx context.Context, kind scan.Kind, namespace, name string) (workload.Object, error)
}

// ErrGone says that an object is not there any more.
var ErrGone = errors.New("the object is gone")

// ErrUnreadable says that an object cannot be read, which the next try would not change.
var ErrUnreadable = errors.New("the object cannot be read")

// Looker judges one object; a *scan.Scanner is one.
type Looker interface {
	Look(ctx context.Context, kind scan.Kind, object workload.Object, asked time.Time) error
}

// Result is what became of a change.
type Result string

// The results.
const (
	Judged    Result = "judged"
	Unchanged Result = "unchanged" // nothing that policies see
	Gone      Result = "gone"
	// Listed are changes that are left to a round, which lists the kind again.
	Listed Result = "listed"
)

// Observer is told how it goes.
type Observer interface {
	// Changed counts changes by what became of them.
	Changed(what Result, count int)
	// Unfollowed tells of a kind that cannot be followed until something is granted, and
	// Failed of what is tried again.
	Unfollowed(kind scan.Kind, err error)
	Failed(err error)
}

// Options are what a Follower needs. What is not said to be optional is required.
type Options struct {
	Cluster  Cluster
	Observer Observer
	// Excluded are patterns for namespaces whose objects are left out; may be empty.
	Excluded []string
}

// Follower implements scan.Follower. Make one with New, hand it to a scan.Scanner, and
// Run it beside the rounds, once.
type Follower struct {
	options Options
	queue   *queue
	marks   *marks

	mu    sync.Mutex
	kinds map[scan.Kind]*followed
	fell  chan struct{} // closed when a kind falls behind
	woken chan struct{} // has one when a watch is to begin
	begin map[scan.Kind]string
}

// followed is what is known of a kind.
type followed struct {
	behind bool               // something may have been missed since the list
	stop   context.CancelFunc // of its watch; nil where there is none
}

var _ scan.Follower = (*Follower)(nil)

// New makes a Follower; it refuses options without what is required.
func New(o Options) (*Follower, error) {
	if o.Cluster == nil || o.Observer == nil {
		return nil, errors.New("follow: the cluster and the observer are required")
	}
	return &Follower{
		options: o, queue: newQueue(MaxWaiting), marks: newMarks(maxMarks), kinds: map[scan.Kind]*followed{},
		fell: make(chan struct{}), woken: make(chan struct{}, 1), begin: map[scan.Kind]string{},
	}, nil
}

// Kinds implements scan.Follower: kinds that nobody has listed yet are behind.
func (f *Follower) Kinds(kinds []scan.Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted := make(map[scan.Kind]bool, len(kinds))
	for _, kind := range kinds {
		wanted[kind] = true
		if f.kinds[kind] == nil {
			f.kinds[kind] = &followed{behind: true}
		}
	}
	for kind, known := range f.kinds {
		if wanted[kind] {
			continue
		}
		if known.stop != nil {
			known.stop()
		}
		delete(f.kinds, kind)
		delete(f.begin, kind)
		f.queue.drop(kind)
	}
}

// Listed implements scan.Follower: from the version on the kind is watched, unless it is
// already. Without a version it cannot be.
func (f *Follower) Listed(kind scan.Kind, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.kinds[kind]
	if known == nil {
		return
	}
	known.behind = false
	if known.stop != nil || version == "" || version == "0" {
		return
	}
	f.begin[kind] = version
	select {
	case f.woken <- struct{}{}:
	default: // it is awake already
	}
}

// Refused implements scan.Follower.
func (f *Follower) Refused(kind scan.Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.kinds[kind]; known != nil {
		known.behind = false
	}
}

// Behind implements scan.Follower.
func (f *Follower) Behind() ([]scan.Kind, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var behind []scan.Kind
	for kind, known := range f.kinds {
		if known.behind {
			behind = append(behind, kind)
		}
	}
	return behind, f.fell
}

// Waiting is how many objects wait to be looked at.
func (f *Follower) Waiting() int { return f.queue.len() }

// Run watches and looks until ctx ends, and returns when nothing of it runs any more.
func (f *Follower) Run(ctx context.Context, looker Looker) {
	var all sync.WaitGroup
	defer all.Wait()
	for range workers {
		all.Go(func() { f.work(ctx, looker) })
	}
	for {
		f.mu.Lock()
		for kind, version := range f.begin {
			watching, stop := context.WithCancel(ctx)
			known := f.kinds[kind]
			known.stop = stop
			all.Go(func() {
				defer stop()
				f.watch(watching, kind, known, version)
			})
		}
		clear(f.begin)
		f.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-f.woken:
		}
	}
}

// watch watches one kind until ctx ends, or where it was is not known any more.
func (f *Follower) watch(ctx context.Context, kind scan.Kind, known *followed, since string) {
	pause := firstPause
	for {
		began := time.Now()
		next, err := f.options.Cluster.Watch(ctx, kind, since, func(c Change) { f.changed(kind, c) })
		if ctx.Err() != nil {
			return
		}
		moved := next != since
		since = next
		var expired *scan.ExpiredError
		switch {
		case errors.As(err, &expired):
			f.end(kind, known, true)
			return
		case errors.Is(err, scan.ErrRefused):
			f.options.Observer.Unfollowed(kind, err)
			f.end(kind, known, false) // the next whole round tries it again
			return
		case err != nil:
			f.options.Observer.Failed(fmt.Errorf("watch %s: %w", kind, err))
		case moved || time.Since(began) >= firstPause:
			pause = firstPause
			continue
		}
		if !wait(ctx, pause) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}

// end notes that a kind is not watched any more.
func (f *Follower) end(kind scan.Kind, known *followed, behind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known.stop = nil
	if behind && f.kinds[kind] == known {
		f.fall(kind)
	}
}

// fall notes that a kind is behind; the caller holds the lock.
func (f *Follower) fall(kind scan.Kind) {
	known := f.kinds[kind]
	if known == nil || known.behind {
		return
	}
	known.behind = true
	close(f.fell)
	f.fell = make(chan struct{})
}

// changed has an object looked at, unless nothing has changed that policies see.
func (f *Follower) changed(kind scan.Kind, c Change) {
	if c.Gone {
		f.marks.forget(c.UID)
		f.options.Observer.Changed(Gone, 1)
		return
	}
	namespace := c.Namespace
	if kind.Group == "" && kind.Kind == "Namespace" {
		namespace = c.Name
	}
	if namespace != "" && len(f.options.Excluded) > 0 && wildcard.Any(f.options.Excluded, namespace) {
		return
	}
	if c.Mark != 0 && !f.marks.differs(c.UID, c.Mark) {
		f.options.Observer.Changed(Unchanged, 1)
		return
	}
	f.put(item{kind, c.Namespace, c.Name})
}

// put has an object looked at. Where too many wait, those of its kind are left to a
// round.
func (f *Follower) put(next item) {
	if f.queue.put(next) {
		return
	}
	f.options.Observer.Changed(Listed, f.queue.drop(next.kind)+1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fall(next.kind)
}

// work looks at what waits, one object after the other, until ctx ends.
func (f *Follower) work(ctx context.Context, looker Looker) {
	pause := firstPause
	for {
		next, ok := f.queue.take(ctx)
		if !ok {
			return
		}
		err := f.look(ctx, looker, next)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrGone):
			f.options.Observer.Changed(Gone, 1)
		case errors.Is(err, scan.ErrRefused):
			f.refuse(next.kind, err)
		case errors.Is(err, ErrUnreadable): // whoever writes some would else hold up all others
			f.options.Observer.Failed(fmt.Errorf("look at %s %s/%s, which changed: %w", next.kind, next.namespace, next.name, err))
			f.options.Observer.Changed(Listed, 1)
		case err != nil:
			f.options.Observer.Failed(fmt.Errorf("look at %s %s/%s, which changed: %w", next.kind, next.namespace, next.name, err))
			f.put(next)
			if !wait(ctx, pause) {
				return
			}
			pause = min(2*pause, longestPause)
			continue
		default:
			f.options.Observer.Changed(Judged, 1)
		}
		pause = firstPause
	}
}

func (f *Follower) look(ctx context.Context, looker Looker, next item) error {
	asked := time.Now()
	object, err := f.options.Cluster.Get(ctx, next.kind, next.namespace, next.name)
	if err != nil {
		return err
	}
	return looker.Look(ctx, next.kind, object, asked)
}

// refuse stops the watch of a kind whose objects may not be seen.
func (f *Follower) refuse(kind scan.Kind, err error) {
	f.mu.Lock()
	known := f.kinds[kind]
	watched := known != nil && known.stop != nil
	if watched {
		known.stop()
		known.stop = nil
	}
	f.mu.Unlock()
	f.options.Observer.Changed(Listed, f.queue.drop(kind)+1)
	if watched {
		f.options.Observer.Unfollowed(kind, err)
	}
}

// wait reports whether the time has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
