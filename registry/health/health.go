package health

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Bounds, with their reason.
const (
	// maxRegistries bounds the memory: mirrors name a handful, but a template makes hosts of
	// image names. Beyond it, the least recently used entry is evicted, closed ones first.
	maxRegistries = 256
	// maxProbes bounds how many registries are probed at once.
	maxProbes = 8
	// idleTime ends the probing of an unused registry. The next request after it waits for an
	// answer again.
	idleTime = 10 * time.Minute
)

// Config holds the required dependencies of a Breaker.
type Config struct {
	// Probe asks whether a registry (host or host:port) answers, as
	// (*registry.Client).Ping does. It must heed its context.
	Probe func(ctx context.Context, registry string) error
}

// Breaker tracks which registries answer. It is safe for concurrent use. Close it to end
// its probes.
type Breaker struct {
	probe       func(ctx context.Context, registry string) error
	first, most time.Duration // of rests
	timeout     time.Duration // of a probe
	observer    func(State)   // may be nil
	now         func() time.Time

	live    context.Context // of the probes, which belong to no call
	end     context.CancelFunc
	slots   chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	entries map[string]*entry
	// answering and resting hold the entries, those that were asked about last in
	// front.
	answering, resting *list.List
}

// Option changes a default of a Breaker.
type Option func(*Breaker) error

// WithRest sets how long a registry rests first (5 s unless set), and at most
// (2 min unless set); the rest doubles with each probe that fails.
func WithRest(first, most time.Duration) Option {
	return func(b *Breaker) error {
		if first <= 0 || most < first {
			return fmt.Errorf("pause %s, at most %s: both must be positive, and the maximum not below the first", first, most)
		}
		b.first, b.most = first, most
		return nil
	}
}

// WithProbeTimeout bounds a probe; 5 s unless set.
func WithProbeTimeout(d time.Duration) Option {
	return func(b *Breaker) error {
		if d <= 0 {
			return fmt.Errorf("probe timeout %s must be positive", d)
		}
		b.timeout = d
		return nil
	}
}

// WithObserver has seen called for each change, in order. It must be quick and
// not call the Breaker, which is locked meanwhile.
func WithObserver(seen func(State)) Option {
	return func(b *Breaker) error {
		if seen == nil {
			return errors.New("the observer is nil")
		}
		b.observer = seen
		return nil
	}
}

// WithClock replaces the clock of the times in States, for tests. Rests are timed by the
// runtime's clock.
func WithClock(now func() time.Time) Option {
	return func(b *Breaker) error {
		if now == nil {
			return errors.New("the clock is nil")
		}
		b.now = now
		return nil
	}
}

// New makes a Breaker without entries.
func New(config Config, with ...Option) (*Breaker, error) {
	if config.Probe == nil {
		return nil, errors.New("health of registries: want a probe")
	}
	b := &Breaker{
		probe: config.Probe, first: 5 * time.Second, most: 2 * time.Minute, timeout: 5 * time.Second, now: time.Now,
		slots: make(chan struct{}, maxProbes), entries: map[string]*entry{}, answering: list.New(), resting: list.New(),
	}
	for _, option := range with {
		if err := option(b); err != nil {
			return nil, fmt.Errorf("health of registries: %w", err)
		}
	}
	b.live, b.end = context.WithCancel(context.Background())
	return b, nil
}

// Close ends the probes and waits for those that run. The Breaker then stays as
// it is.
func (b *Breaker) Close() {
	b.mu.Lock()
	b.closed = true
	for _, e := range b.entries {
		e.stop()
	}
	b.mu.Unlock()
	b.end()
	b.running.Wait()
}

// Rest reports that the registry did not answer a moment ago, and why; it should
// not be asked then. It never waits.
func (b *Breaker) Rest(registry string) (why string, resting bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[registry]
	if !ok {
		return "", false
	}
	b.touch(e)
	if !e.resting() {
		return "", false
	}
	return reason(e.Err), true
}

// Told records the result of a request to the registry. A missing answer opens the
// breaker; a success closes it, also that of a request sent before the rest began: it came
// after the failure, and costs at most one more request. These results are never probes,
// since resting registries are not asked. A registry's own error may concern one image,
// which an attacker can choose: it triggers a probe at once, at most one in the time of a
// first rest, and only the probe opens the breaker.
func (b *Breaker) Told(registry string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	verdict := judge(err)
	if b.closed || verdict == nothing {
		return
	}
	e, ok := b.entries[registry]
	if !ok {
		e = b.add(registry, verdict)
		if e == nil {
			return
		}
	}
	b.touch(e)
	switch {
	case verdict == doubtful && !e.resting():
		e.Err = err
		if b.now().Sub(e.doubt) >= b.first {
			e.doubt = b.now()
			turn := e.turn
			e.timer = time.AfterFunc(0, func() { b.clear(e, turn) })
		}
	case verdict == silent && !e.resting():
		b.open(e, err)
	case verdict == silent || verdict == doubtful:
		e.Err = err
	case err == nil && e.resting():
		b.change(e, Closed)
	}
}

// States returns the entries, sorted by registry.
func (b *Breaker) States() []State {
	b.mu.Lock()
	defer b.mu.Unlock()
	states := make([]State, 0, len(b.entries))
	for _, e := range b.entries {
		states = append(states, e.State)
	}
	slices.SortFunc(states, func(x, y State) int { return cmp.Compare(x.Registry, y.Registry) })
	return states
}

// add adds a closed entry for a registry and evicts another one if full; nil where all
// entries rest and the new one answers.
func (b *Breaker) add(registry string, verdict verdict) *entry {
	if len(b.entries) >= maxRegistries {
		oldest := b.answering.Back()
		if oldest == nil && verdict != present {
			oldest = b.resting.Back()
		}
		if oldest == nil {
			return nil
		}
		b.forget(oldest.Value.(*entry))
	}
	e := &entry{State: State{Registry: registry, Phase: Closed, Since: b.now()}}
	e.place = b.answering.PushFront(e)
	b.entries[registry] = e
	if verdict == present {
		b.tell(e.State)
	}
	return e
}

func (b *Breaker) forget(e *entry) {
	e.stop()
	e.turn++
	b.answering.Remove(e.place)
	b.resting.Remove(e.place)
	delete(b.entries, e.Registry)
	gone := e.State
	gone.Phase, gone.Since = Forgotten, b.now()
	b.tell(gone)
}

// touch records the time of use.
func (b *Breaker) touch(e *entry) {
	e.asked = b.now()
	b.answering.MoveToFront(e.place)
	b.resting.MoveToFront(e.place)
}

// change moves an entry to another phase.
func (b *Breaker) change(e *entry, to Phase) {
	was := e.resting()
	e.Phase = to
	e.turn++
	e.stop()
	if is := e.resting(); is != was {
		e.Since = b.now()
		b.answering.Remove(e.place)
		b.resting.Remove(e.place)
		home := b.answering
		if is {
			home = b.resting
		}
		e.place = home.PushFront(e)
	}
	b.tell(e.State)
}

func (b *Breaker) tell(s State) {
	if b.observer != nil {
		b.observer(s)
	}
}

func (e *entry) stop() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}
