// Package mirror maintains a local copy of one resource and reports its changes.
//
// It is client-go's reflector (list, watch, resume, back off) over a store that retains only the
// required part of each object. A repeated list is reported as the exact difference. It follows
// the list and watch protocol of the Kubernetes API (resourceVersion, bookmarks, streaming
// lists).
package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// The pause after a failed list or watch begins at firstPause, doubles with jitter and stays at
// longestPause. A recovered API server is thus noticed within seconds and not overloaded.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second
	pauseSteps   = 6
)

// Source is the source of the objects.
type Source struct {
	// Client is the client of List and Watch; it determines whether lists can be streamed.
	Client any
	// List and Watch are those of one resource; required.
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Example is an object of the resource's type; required.
	Example runtime.Object
}

// Metadata returns the source of a resource's metadata, in all namespaces.
func Metadata(client metadata.Interface, resource schema.GroupVersionResource) Source {
	all := client.Resource(resource)
	return Source{
		Client: client,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return all.Watch(ctx, o)
		},
		Example: &metav1.PartialObjectMetadata{},
	}
}

// Change is one object that was added, changed or deleted.
type Change[T any] struct {
	Key types.NamespacedName
	// Object is the current object; nil after its deletion. The receiver owns it.
	Object runtime.Object
	// Old and New are the retained values; zero when there is none.
	Old, New T
}

// Options are the dependencies of a Mirror.
type Options[T any] struct {
	// What names the resource in errors: "namespaces"; required.
	What string
	// Keep returns the part of an object to retain; required.
	Keep func(runtime.Object) (T, error)
	// Same reports whether two values are equivalent, so that the change is not reported; nil
	// means that every change is.
	Same func(older, newer T) bool
	// Changed is called with all changes of one event or one list, sequentially. May be nil.
	Changed func([]Change[T])
	// Listed is called once, when the first full list has been reported and Synced is closed. May
	// be nil.
	Listed func()
	// Failed is called when a list or a watch failed; it is retried. May be nil.
	Failed func(error)
}

// Mirror is the copy of one resource. It is safe for concurrent use. Create one with New.
type Mirror[T any] struct {
	options Options[T]
	synced  chan struct{}
	once    sync.Once

	mu    sync.RWMutex
	items map[types.NamespacedName]T
}

// New returns an empty Mirror, and an error for invalid options.
func New[T any](o Options[T]) (*Mirror[T], error) {
	if o.What == "" || o.Keep == nil {
		return nil, errors.New("mirror: What and Keep are required")
	}
	return &Mirror[T]{options: o, synced: make(chan struct{}), items: make(map[types.NamespacedName]T)}, nil
}

// Run updates the mirror from the source until ctx ends, and returns when all of its goroutines
// have ended. The content is retained, so that a later Run with another source reports the
// difference. Only one Run at a time.
func (m *Mirror[T]) Run(ctx context.Context, s Source) {
	// client-go logs to a global logger; failures go to Failed instead.
	ctx = klog.NewContext(ctx, logr.Discard())
	logger := logr.Discard()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := s.List(ctx, o)
			m.failed(ctx, "list", err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := s.Watch(ctx, o)
			// An API server older than 1.32 rejects streaming lists; a plain list follows.
			if o.SendInitialEvents == nil || !apierrors.IsInvalid(err) {
				m.failed(ctx, "watch", err)
			}
			return w, err
		},
	}
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, s.Client), s.Example, store[T]{m},
		cache.ReflectorOptions{
			Name: m.options.What, Logger: &logger,
			Backoff: &wait.Backoff{Duration: firstPause, Cap: longestPause, Steps: pauseSteps, Factor: 2, Jitter: 0.5},
		})
	r.RunWithContext(ctx)
}

func (m *Mirror[T]) failed(ctx context.Context, verb string, err error) {
	switch {
	case err == nil || m.options.Failed == nil || ctx.Err() != nil:
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err): // the ordinary reason to list again
	default:
		m.options.Failed(fmt.Errorf("%s %s: %w", verb, m.options.What, err))
	}
}

// Synced is closed when the first full list is stored and has been reported.
func (m *Mirror[T]) Synced() <-chan struct{} { return m.synced }

// Get returns the retained part of one object.
func (m *Mirror[T]) Get(namespace, name string) (T, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	item, ok := m.items[types.NamespacedName{Namespace: namespace, Name: name}]
	return item, ok
}

// Each calls do for each object, in no order; do must not call the mirror.
func (m *Mirror[T]) Each(do func(types.NamespacedName, T)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for key, item := range m.items {
		do(key, item)
	}
}

// Forget removes all objects and reports them as deleted; not during Run.
func (m *Mirror[T]) Forget() {
	m.mu.Lock()
	var changes []Change[T]
	for key, item := range m.items {
		changes = append(changes, Change[T]{Key: key, Old: item})
	}
	clear(m.items)
	m.mu.Unlock()
	m.tell(changes)
}

func (m *Mirror[T]) tell(changes []Change[T]) {
	if m.options.Changed != nil && len(changes) > 0 {
		m.options.Changed(changes)
	}
}

// put stores one object; the caller holds the lock. False: it is equivalent to the earlier one.
func (m *Mirror[T]) put(object any) (Change[T], bool, error) {
	key, typed, err := identify(object)
	if err != nil {
		return Change[T]{}, false, err
	}
	item, err := m.options.Keep(typed)
	if err != nil {
		return Change[T]{}, false, fmt.Errorf("keep %s %s: %w", m.options.What, key, err)
	}
	old, known := m.items[key]
	m.items[key] = item
	if known && m.options.Same != nil && m.options.Same(old, item) {
		return Change[T]{}, false, nil
	}
	return Change[T]{Key: key, Object: typed, Old: old, New: item}, true, nil
}

func identify(object any) (types.NamespacedName, runtime.Object, error) {
	typed, ok := object.(runtime.Object)
	if !ok {
		return types.NamespacedName{}, nil, fmt.Errorf("a %T is no object", object)
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return types.NamespacedName{}, nil, err
	}
	return types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}, typed, nil
}

// store is a Mirror in the form that the reflector requires.
type store[T any] struct{ m *Mirror[T] }

func (s store[T]) Add(object any) error {
	s.m.mu.Lock()
	change, changed, err := s.m.put(object)
	s.m.mu.Unlock()
	if changed {
		s.m.tell([]Change[T]{change})
	}
	s.report(err)
	return nil
}

func (s store[T]) Update(object any) error { return s.Add(object) }

func (s store[T]) Delete(object any) error {
	key, _, err := identify(object)
	if err != nil {
		s.report(err)
		return nil
	}
	s.m.mu.Lock()
	old, known := s.m.items[key]
	delete(s.m.items, key)
	s.m.mu.Unlock()
	if known {
		s.m.tell([]Change[T]{{Key: key, Old: old}})
	}
	return nil
}

func (s store[T]) Replace(objects []any, _ string) error {
	var changes []Change[T]
	var errs []error
	seen := make(map[types.NamespacedName]bool, len(objects))
	s.m.mu.Lock()
	for _, object := range objects {
		key, _, err := identify(object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		seen[key] = true // also when it cannot be stored: the object exists, so its earlier state is retained
		change, changed, err := s.m.put(object)
		errs = append(errs, err)
		if changed {
			changes = append(changes, change)
		}
	}
	for key, old := range s.m.items {
		if !seen[key] {
			delete(s.m.items, key)
			changes = append(changes, Change[T]{Key: key, Old: old})
		}
	}
	s.m.mu.Unlock()
	s.m.tell(changes)
	s.m.once.Do(func() {
		close(s.m.synced)
		if s.m.options.Listed != nil {
			s.m.options.Listed()
		}
	})
	s.report(errors.Join(errs...))
	return nil
}

// Resync does nothing: no change is reported twice.
func (s store[T]) Resync() error { return nil }

// report reports an object that cannot be stored. The reflector gets no error: an invalid object
// must not block the others.
func (s store[T]) report(err error) {
	if err != nil && s.m.options.Failed != nil {
		s.m.options.Failed(err)
	}
}
