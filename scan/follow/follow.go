package follow

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	// workers is the number of parallel evaluations, so that a slow registry delays few other
	// objects.
	workers = 4
	// MaxWaiting bounds the queue. At the scan's usual ten requests a second it takes less than
	// two minutes, and a list has as many objects in four requests.
	MaxWaiting = 1_000
	// firstPause and longestPause bound the pause between two attempts, which doubles. A watch
	// that ends sooner than firstPause counts as failed.
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// Change is a watch event of an object.
type Change struct {
	Namespace, Name, UID string
	// Mark identifies the object's content without reading it: between two changes with the same
	// mark, nothing relevant to policies changed. 0 means unknown.
	Mark uint64
	// Gone: the object was deleted.
	Gone bool
}

// Cluster watches and reads objects.
type Cluster interface {
	// Watch reports the changes of a kind since a resourceVersion, until ctx ends or the API
	// server closes the watch. It returns the resourceVersion to continue from. An expired
	// resourceVersion is a *scan.ExpiredError, and a watch without permission a scan.ErrRefused.
	Watch(ctx context.Context, kind scan.Kind, since string, tell func(Change)) (string, error)
	// Get returns an object. It fails with ErrGone for a missing one, with ErrUnreadable for an
	// invalid one, and with scan.ErrRefused without permission.
	Get(ctx context.Context, kind scan.Kind, namespace, name string) (workload.Object, error)
}

// ErrGone means: the object no longer exists.
var ErrGone = errors.New("the object is gone")

// ErrUnreadable means: the object is invalid, and a retry would fail, too.
var ErrUnreadable = errors.New("the object cannot be read")

// Looker evaluates one object; *scan.Scanner implements it.
type Looker interface {
	Look(ctx context.Context, kind scan.Kind, object workload.Object, asked time.Time) error
}

// Result is the result of handling a change.
type Result string

// The results.
const (
	Judged    Result = "judged"
	Unchanged Result = "unchanged" // nothing relevant to policies
	Gone      Result = "gone"
	// Listed are changes that are left to a round, which lists the kind again.
	Listed Result = "listed"
)

// Observer receives events of a Follower.
type Observer interface {
	// Changed counts changes by result.
	Changed(what Result, count int)
	// Unfollowed is called for a kind that cannot be watched without further permissions, and
	// Failed for a retried error.
	Unfollowed(kind scan.Kind, err error)
	Failed(err error)
}

// Options are the dependencies of a Follower. Fields are required unless marked as optional.
type Options struct {
	Cluster  Cluster
	Observer Observer
	// Excluded are patterns for excluded namespaces; may be empty.
	Excluded []string
}

// Follower implements scan.Follower. Create one with New, pass it to a scan.Scanner, and Run it
// once, in parallel with the rounds.
type Follower struct {
	options Options
	queue   *queue
	marks   *marks

	mu    sync.Mutex
	kinds map[scan.Kind]*followed
	fell  chan struct{} // closed when a kind falls behind
	woken chan struct{} // receives an element when a watch must begin
	begin map[scan.Kind]string
}

// followed is the state of a kind.
type followed struct {
	behind bool               // changes may have been missed since the list
	stop   context.CancelFunc // of its watch; nil where there is none
}

var _ scan.Follower = (*Follower)(nil)

// New creates a Follower, and returns an error for a missing required option.
func New(o Options) (*Follower, error) {
	if o.Cluster == nil || o.Observer == nil {
		return nil, errors.New("follow: the cluster and the observer are required")
	}
	return &Follower{
		options: o, queue: newQueue(MaxWaiting), marks: newMarks(maxMarks), kinds: map[scan.Kind]*followed{},
		fell: make(chan struct{}), woken: make(chan struct{}, 1), begin: map[scan.Kind]string{},
	}, nil
}

// Kinds implements scan.Follower: kinds that were not listed yet are behind.
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

// Listed implements scan.Follower: it starts a watch from the resourceVersion, unless there is
// one. Without a resourceVersion there can be none.
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
	default: // already signalled
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

// Waiting is the length of the queue.
func (f *Follower) Waiting() int { return f.queue.len() }

// Run watches and evaluates until ctx ends, and returns when all of its goroutines have ended.
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

// watch watches one kind until ctx ends, or until its resourceVersion has expired.
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
			f.end(kind, known, false) // the next whole round retries it
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

// end records the end of a kind's watch.
func (f *Follower) end(kind scan.Kind, known *followed, behind bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known.stop = nil
	if behind && f.kinds[kind] == known {
		f.fall(kind)
	}
}

// fall marks a kind as behind; the caller holds the lock.
func (f *Follower) fall(kind scan.Kind) {
	known := f.kinds[kind]
	if known == nil || known.behind {
		return
	}
	known.behind = true
	close(f.fell)
	f.fell = make(chan struct{})
}

// changed queues an object, unless nothing relevant to policies has changed.
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

// put queues an object. If the queue is full, the whole kind is left to a round.
func (f *Follower) put(next item) {
	if f.queue.put(next) {
		return
	}
	f.options.Observer.Changed(Listed, f.queue.drop(next.kind)+1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fall(next.kind)
}

// work evaluates queued objects sequentially until ctx ends.
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
		case errors.Is(err, ErrUnreadable): // not retried: invalid objects of one user would delay all others
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

// refuse stops the watch of a kind without read permission.
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

// wait waits, and reports whether it finished before ctx ended.
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
