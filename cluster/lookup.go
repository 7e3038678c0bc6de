package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/cache"
)

const (
	// lookupTimeout bounds one request to the API server: shorter than the least
	// that a webhook's caller waits with default settings (10 s).
	lookupTimeout = 5 * time.Second
	// absentTTL is how long "not found" and "forbidden" are remembered: short,
	// since a deployment makes a Secret and its Pods in one go. Could-not-look is
	// never remembered.
	absentTTL = 5 * time.Second
	// maxHold is how long an object serves Held while the API server does not answer, and
	// retry how long it then serves without asking again.
	maxHold = 10 * time.Minute
	retry   = 5 * time.Second
	// patience is how long Held waits for an API server that may be silent.
	patience = 500 * time.Millisecond
	// absentCost is what an absent object counts for in a memory, in bytes.
	absentCost = 256
)

// lookup asks for objects of one kind, remembers the answers and asks once for
// all who want the same at the same time.
type lookup[T any] struct {
	kind   string
	memory *cache.Cache[types.NamespacedName, answer[T]]
	flight *cache.Flight[types.NamespacedName, T]
	ttl    time.Duration
	hold   time.Duration
	now    func() time.Time
	// fetch returns the object and about how many bytes it takes.
	fetch func(ctx context.Context, namespace, name string) (T, int, error)
}

// answer is an object, or the reason why there is none.
type answer[T any] struct {
	value   T
	err     error
	cost    int
	fetched time.Time
	due     time.Time // when it is asked for again
	retry   time.Time // when who may be given it held asks again
}

// limits bound the memory of a lookup.
type limits struct {
	ttl  time.Duration
	hold time.Duration // how long objects serve held; 0 for never
	cost uint64        // bytes
	now  func() time.Time
}

func newLookup[T any](kind string, l limits, fetch func(context.Context, string, string) (T, int, error)) (*lookup[T], error) {
	if l.now == nil {
		l.now = time.Now
	}
	memory, err := cache.New(cache.Options[types.NamespacedName, answer[T]]{
		MaxCost: l.cost, MaxTTL: max(l.ttl, l.hold), Now: l.now,
		Cost: func(key types.NamespacedName, a answer[T]) int {
			return len(key.Namespace) + len(key.Name) + a.cost + absentCost
		},
	})
	if err != nil {
		return nil, fmt.Errorf("look up %ss: %w", kind, err)
	}
	flight, err := cache.NewFlight[types.NamespacedName, T](lookupTimeout)
	if err != nil {
		return nil, fmt.Errorf("look up %ss: %w", kind, err)
	}
	return &lookup[T]{kind: kind, memory: memory, flight: flight, ttl: l.ttl, hold: l.hold, now: l.now, fetch: fetch}, nil
}

// get returns one object; it belongs to the memory and is not to be changed.
func (l *lookup[T]) get(ctx context.Context, namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if known, ok := l.memory.Get(key); ok && l.now().Before(known.due) {
		return known.value, known.err
	}
	return l.shared(ctx, key)
}

// held is get, but for an object that was there and that nobody can look up just now: it
// is what it was. Whether it is gone, or may not be read any more, is heeded at once.
func (l *lookup[T]) held(ctx context.Context, namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	known, ok := l.memory.Get(key)
	switch {
	case !ok || known.err != nil:
		return l.get(ctx, namespace, name)
	case l.now().Before(known.due) || l.now().Before(known.retry):
		return known.value, nil
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := l.shared(soon, key) // which goes on when nobody waits any more
	if !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
		return value, err
	}
	known.retry = l.now().Add(retry)
	l.memory.Put(key, known, l.hold-l.now().Sub(known.fetched))
	return known.value, nil
}

// shared asks for an object, once for all who want it at the same time.
func (l *lookup[T]) shared(ctx context.Context, key types.NamespacedName) (T, error) {
	namespace, name := key.Namespace, key.Name
	var none T
	if err := l.possible(namespace, name); err != nil {
		return none, err
	}
	value, err := l.flight.Do(ctx, key, func(ctx context.Context) (T, error) { return l.ask(ctx, key) })
	if known := (*Error)(nil); err != nil && !errors.As(err, &known) { // the caller left, or the work broke
		err = &Error{Kind: l.kind, Namespace: namespace, Name: name, Reason: ErrUnavailable, Cause: err}
	}
	return value, err
}

// ask fetches an object and remembers the answer.
func (l *lookup[T]) ask(ctx context.Context, key types.NamespacedName) (T, error) {
	value, cost, err := l.fetch(ctx, key.Namespace, key.Name)
	err = classify(l.kind, key.Namespace, key.Name, err)
	switch {
	case err == nil:
		now := l.now()
		l.memory.Put(key, answer[T]{value: value, cost: cost, fetched: now, due: now.Add(l.ttl)}, max(l.ttl, l.hold))
	case !errors.Is(err, ErrUnavailable):
		// The memory keeps the reason without the cause, which may be large.
		ttl := min(absentTTL, l.ttl)
		a := answer[T]{err: &Error{Kind: l.kind, Namespace: key.Namespace, Name: key.Name, Reason: reasonOf(err)}, due: l.now().Add(ttl)}
		l.memory.Put(key, a, ttl)
	}
	return value, err
}

// anew returns one object as it is now, whatever is remembered, and whoever asked for
// it a moment before. It belongs to the memory.
func (l *lookup[T]) anew(ctx context.Context, namespace, name string) (T, error) {
	var none T
	if err := l.possible(namespace, name); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return l.ask(ctx, types.NamespacedName{Namespace: namespace, Name: name})
}

// possible refuses names that no object can have: they come from workloads, and
// must not reach a request's path.
func (l *lookup[T]) possible(namespace, name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 || namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
		return &Error{Kind: l.kind, Namespace: clip(namespace), Name: clip(name), Reason: ErrNotFound,
			Cause: errors.New("no object can have that name")}
	}
	return nil
}

func (l *lookup[T]) close() { l.memory.Close() }

func reasonOf(err error) error {
	for _, reason := range []error{ErrNotFound, ErrForbidden} {
		if errors.Is(err, reason) {
			return reason
		}
	}
	return ErrUnavailable
}

// clip quotes and shortens a name that may be anything.
func clip(name string) string {
	if len(name) > validation.DNS1123SubdomainMaxLength {
		name = name[:validation.DNS1123SubdomainMaxLength]
	}
	return fmt.Sprintf("%q", name)
}
