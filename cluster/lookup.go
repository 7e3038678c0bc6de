package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/internal/fair"
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
	// maxAsking is how many of Held's questions are at the API server at once. They share
	// CredentialQPS, so that none waits there for longer than patience.
	maxAsking = 16
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
	places *fair.Places // of those who are given what is held; nil: they are not
	served atomic.Uint64
	// mu makes one of looking at what is remembered and of replacing it.
	mu sync.Mutex
	// fetch returns the object and about how many bytes it takes.
	fetch func(ctx context.Context, namespace, name string) (T, int, error)
}

// answer is an object, or the reason why there is none.
type answer[T any] struct {
	value   T
	err     error
	cost    int
	asked   time.Time // when the question began whose answer it is
	fetched time.Time
	due     time.Time // when it is asked for again
	retry   time.Time // when who may be given it held asks again
}

// limits bound the memory of a lookup.
type limits struct {
	ttl    time.Duration
	hold   time.Duration // how long objects serve held; 0 for never
	cost   uint64        // bytes
	now    func() time.Time
	places *fair.Places // where objects serve held
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
	return &lookup[T]{kind: kind, memory: memory, flight: flight, ttl: l.ttl, hold: l.hold, now: l.now, places: l.places, fetch: fetch}, nil
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
// is what it was. Whether it is gone, or may not be read any more, is heeded at once. Each
// namespace has its share of the questions, and to wait for one's turn is no silence.
func (l *lookup[T]) held(ctx context.Context, namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	known, _, ok := l.remembered(key)
	if ok {
		return known.value, known.err
	}
	var none T
	place, err := l.places.Enter(ctx, fair.Claim{Tenant: namespace})
	if err != nil {
		return none, &Error{Kind: l.kind, Namespace: namespace, Name: name, Reason: ErrUnavailable, Cause: err}
	}
	defer place.Leave()
	known, isThere, ok := l.remembered(key) // as who went before left it
	switch {
	case ok:
		return known.value, known.err
	case !isThere:
		return l.shared(ctx, key)
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	value, err := l.shared(soon, key) // which goes on when nobody waits any more
	if err == nil || !isSilence(err) || ctx.Err() != nil {
		return value, err
	}
	return l.stay(key, known)
}

// remembered returns what is remembered: an object that is there, which may have to be asked
// for again, or an answer that will do.
func (l *lookup[T]) remembered(key types.NamespacedName) (known answer[T], isThere, ok bool) {
	known, found := l.memory.Get(key)
	now := l.now()
	return known, found && known.err == nil, found && (now.Before(known.due) || now.Before(known.retry))
}

// stay has an object serve on, unless an answer came meanwhile.
func (l *lookup[T]) stay(key types.NamespacedName, known answer[T]) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, found := l.memory.Get(key); found && now.asked.After(known.asked) {
		return now.value, now.err
	}
	known.retry = l.now().Add(retry)
	l.memory.Put(key, known, l.hold-l.now().Sub(known.fetched))
	l.served.Add(1)
	return known.value, nil
}

// isSilence reports whether nothing is known of an object since the API server did not
// speak of it: it said nothing, or that it cannot just now. To be refused as a stranger is
// an answer.
func isSilence(err error) bool {
	if !errors.Is(err, ErrUnavailable) {
		return false
	}
	var said apierrors.APIStatus
	if !errors.As(err, &said) {
		return true
	}
	code := said.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
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
	asked := l.now()
	value, cost, err := l.fetch(ctx, key.Namespace, key.Name)
	err = classify(l.kind, key.Namespace, key.Name, err)
	now := l.now()
	switch {
	case err == nil:
		l.remember(key, answer[T]{value: value, cost: cost, asked: asked, fetched: now, due: now.Add(l.ttl)}, max(l.ttl, l.hold))
	case !errors.Is(err, ErrUnavailable):
		// The memory keeps the reason without the cause, which may be large.
		ttl := min(absentTTL, l.ttl)
		reason := &Error{Kind: l.kind, Namespace: key.Namespace, Name: key.Name, Reason: reasonOf(err)}
		l.remember(key, answer[T]{err: reason, asked: asked, due: now.Add(ttl)}, ttl)
	}
	return value, err
}

// remember keeps an answer, unless that to a later question came before it.
func (l *lookup[T]) remember(key types.NamespacedName, a answer[T], ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, found := l.memory.Get(key); found && now.asked.After(a.asked) {
		return
	}
	l.memory.Put(key, a, ttl)
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
