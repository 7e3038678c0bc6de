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
	"github.com/quaymaster/quaymaster/internal/fairqueue"
)

const (
	// lookupTimeout bounds one request to the API server. It is shorter than the shortest webhook
	// timeout with default settings (10 s).
	lookupTimeout = 5 * time.Second
	// absentTTL is the lifetime of cached "not found" and "forbidden" responses. It is short,
	// since a deployment may create a Secret and its Pods together. Failed lookups are never
	// cached.
	absentTTL = 5 * time.Second
	// maxHold is the time for which Held returns a stale object while the API server does not
	// respond, and retry the time between two attempts.
	maxHold = 10 * time.Minute
	retry   = 5 * time.Second
	// answerTimeout bounds the wait of Held for an API server that may not respond.
	answerTimeout = 500 * time.Millisecond
	// maxAsking bounds the parallel requests of Held. They share CredentialQPS, so that none
	// waits there for longer than patience.
	maxAsking = 16
	// absentCost is the cost of an absent object in a cache, in bytes.
	absentCost = 256
)

// lookup reads objects of one kind, caches the responses, and joins concurrent requests for the
// same object.
type lookup[T any] struct {
	kind   string
	memory *cache.Cache[types.NamespacedName, answer[T]]
	flight *cache.Flight[types.NamespacedName, T]
	ttl    time.Duration
	hold   time.Duration
	now    func() time.Time
	places *fairqueue.Queue // of callers that may get stale objects; nil: none may
	served atomic.Uint64
	// mu makes reading and replacing a cache entry atomic.
	mu sync.Mutex
	// fetch returns the object and its approximate size in bytes.
	fetch func(ctx context.Context, namespace, name string) (T, int, error)
}

// answer is an object, or the reason why there is none.
type answer[T any] struct {
	value   T
	err     error
	cost    int
	asked   time.Time // the start of the request
	fetched time.Time
	due     time.Time // the time of the next refresh
	retry   time.Time // the time of the next attempt for callers of held
}

// limits bound the cache of a lookup.
type limits struct {
	ttl    time.Duration
	hold   time.Duration // the time for which stale objects are returned; 0 for never
	cost   uint64        // bytes
	now    func() time.Time
	places *fairqueue.Queue // for stale objects
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

// get returns one object, which the cache owns and which must not be modified.
func (l *lookup[T]) get(ctx context.Context, namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if known, ok := l.memory.Get(key); ok && l.now().Before(known.due) {
		return known.value, known.err
	}
	return l.shared(ctx, key)
}

// held is get, but returns a known object in its last state while the API server does not
// respond. It respects a deletion or a revoked permission at once. The requests are shared fairly
// among namespaces, and time in the queue does not count as a missing response.
func (l *lookup[T]) held(ctx context.Context, namespace, name string) (T, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	known, _, ok := l.remembered(key)
	if ok {
		return known.value, known.err
	}
	var none T
	place, err := l.places.Enter(ctx, fairqueue.Claim{Tenant: namespace})
	if err != nil {
		return none, &Error{Kind: l.kind, Namespace: namespace, Name: name, Reason: ErrUnavailable, Cause: err}
	}
	defer place.Leave()
	known, isThere, ok := l.remembered(key) // the result of an earlier caller
	switch {
	case ok:
		return known.value, known.err
	case !isThere:
		return l.shared(ctx, key)
	}
	soon, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	value, err := l.shared(soon, key) // continues when all callers have left
	if err == nil || !isSilence(err) || ctx.Err() != nil {
		return value, err
	}
	return l.stay(key, known)
}

// remembered returns the cached answer: an existing object, which may be due for a refresh, or an
// answer that is still valid.
func (l *lookup[T]) remembered(key types.NamespacedName) (known answer[T], isThere, ok bool) {
	known, found := l.memory.Get(key)
	now := l.now()
	return known, found && known.err == nil, found && (now.Before(known.due) || now.Before(known.retry))
}

// stay extends the use of a stale object, unless there is a newer response.
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

// isSilence reports whether an error leaves the state of an object unknown: the API server did
// not respond, or reported overload or a server error. Any other response is a known state,
// Unauthorized included.
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

// shared joins concurrent requests for an object.
func (l *lookup[T]) shared(ctx context.Context, key types.NamespacedName) (T, error) {
	namespace, name := key.Namespace, key.Name
	var none T
	if err := l.possible(namespace, name); err != nil {
		return none, err
	}
	value, err := l.flight.Do(ctx, key, func(ctx context.Context) (T, error) { return l.ask(ctx, key) })
	if known := (*Error)(nil); err != nil && !errors.As(err, &known) { // the caller left, or the request panicked
		err = &Error{Kind: l.kind, Namespace: namespace, Name: name, Reason: ErrUnavailable, Cause: err}
	}
	return value, err
}

// ask fetches an object and caches the response.
func (l *lookup[T]) ask(ctx context.Context, key types.NamespacedName) (T, error) {
	asked := l.now()
	value, cost, err := l.fetch(ctx, key.Namespace, key.Name)
	err = classify(l.kind, key.Namespace, key.Name, err)
	now := l.now()
	switch {
	case err == nil:
		l.remember(key, answer[T]{value: value, cost: cost, asked: asked, fetched: now, due: now.Add(l.ttl)}, max(l.ttl, l.hold))
	case !errors.Is(err, ErrUnavailable):
		// The cache stores the reason without the cause, which may be large.
		ttl := min(absentTTL, l.ttl)
		reason := &Error{Kind: l.kind, Namespace: key.Namespace, Name: key.Name, Reason: reasonOf(err)}
		l.remember(key, answer[T]{err: reason, asked: asked, due: now.Add(ttl)}, ttl)
	}
	return value, err
}

// remember caches an answer, unless the cached one belongs to a later request.
func (l *lookup[T]) remember(key types.NamespacedName, a answer[T], ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, found := l.memory.Get(key); found && now.asked.After(a.asked) {
		return
	}
	l.memory.Put(key, a, ttl)
}

// anew returns the current state of one object, ignoring the cache and concurrent requests. The
// cache owns it.
func (l *lookup[T]) anew(ctx context.Context, namespace, name string) (T, error) {
	var none T
	if err := l.possible(namespace, name); err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	return l.ask(ctx, types.NamespacedName{Namespace: namespace, Name: name})
}

// possible rejects invalid object names: they come from workloads, and must not reach a request's
// path.
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

// clip quotes and shortens an untrusted name.
func clip(name string) string {
	if len(name) > validation.DNS1123SubdomainMaxLength {
		name = name[:validation.DNS1123SubdomainMaxLength]
	}
	return fmt.Sprintf("%q", name)
}
