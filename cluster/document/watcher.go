package document

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/quaymaster/quaymaster/cluster/internal/mirror"
)

// maxKinds bounds the resources of one Watcher: each needs a stream.
const maxKinds = 50

// retryDelay is the pause before another read of a definition.
const retryDelay = time.Second

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Definitions reads a CustomResourceDefinition.
type Definitions interface {
	// Definition returns it as JSON. An absent one is cluster.ErrNotFound by errors.Is. Any error
	// is retried while the name is listed.
	Definition(ctx context.Context, name string) ([]byte, error)
}

// Options are the dependencies of a Watcher; all but Observer and Defined are required.
type Options struct {
	// Kinds are the resources to watch, at most 50.
	Kinds       []Kind
	Dynamic     dynamic.Interface
	Metadata    metadata.Interface
	Definitions Definitions
	Consumer    Consumer
	Observer    Observer
	// Defined is called when any CustomResourceDefinition is added, changed or deleted, including
	// those of no Kind, and for the existing ones at the start. It must return quickly.
	Defined func()
}

// Watcher watches documents. Create one with New and run it once.
type Watcher struct {
	options     Options
	definitions *mirror.Mirror[string]
	kinds       map[string]*kind // by the name of the definition
	queue       *queue
	wake        chan struct{}

	mu    sync.Mutex
	dirty map[string]bool // definitions to review
}

// New creates a Watcher, and returns an error for a missing required option.
func New(o Options) (*Watcher, error) {
	if o.Dynamic == nil || o.Metadata == nil || o.Definitions == nil || o.Consumer == nil {
		return nil, errors.New("watch documents: Dynamic, Metadata, Definitions and Consumer are required")
	}
	if len(o.Kinds) == 0 || len(o.Kinds) > maxKinds {
		return nil, fmt.Errorf("watch documents: want 1 to %d kinds, got %d", maxKinds, len(o.Kinds))
	}
	if o.Observer == nil {
		o.Observer = silent{}
	}
	w := &Watcher{
		options: o, kinds: make(map[string]*kind), queue: newQueue(o.Consumer),
		wake: make(chan struct{}, 1), dirty: make(map[string]bool),
	}
	for _, k := range o.Kinds {
		if k.Group == "" || k.Resource == "" || len(k.Versions) == 0 {
			return nil, fmt.Errorf("watch documents: kind %q needs a group, a resource and versions", k.name())
		}
		if w.kinds[k.name()] != nil {
			return nil, fmt.Errorf("watch documents: kind %q is named twice", k.name())
		}
		made, err := w.newKind(k)
		if err != nil {
			return nil, err
		}
		w.kinds[k.name()] = made
	}
	var err error
	w.definitions, err = mirror.New(mirror.Options[string]{
		What:    "customresourcedefinitions",
		Keep:    w.keepDefinition,
		Changed: w.definitionsChanged,
		Listed:  w.nudge,
		Failed:  o.Observer.Failed,
	})
	return w, err
}

// Ready is closed when the Consumer has received all documents of the start, and not before all
// Awaited kinds are readable.
func (w *Watcher) Ready() <-chan struct{} { return w.queue.ready }

// Served returns the currently watched resources, in the order of the options.
func (w *Watcher) Served() []schema.GroupVersionResource {
	var served []schema.GroupVersionResource
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.options.Kinds {
		if version := w.kinds[k.name()].version; version != "" {
			served = append(served, schema.GroupVersionResource{Group: k.Group, Version: version, Resource: k.Resource})
		}
	}
	return served
}

// Run watches until ctx ends, and returns when all of its goroutines have ended.
func (w *Watcher) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() {
		w.definitions.Run(ctx, mirror.Metadata(w.options.Metadata, definitionsResource))
	})
	wg.Go(func() { w.queue.run(ctx) })
	w.supervise(ctx)
	for _, k := range w.kinds {
		k.stop()
	}
	wg.Wait()
}

// keepDefinition stores the version of every definition, so that only relevant ones are read.
func (w *Watcher) keepDefinition(object runtime.Object) (string, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return "", fmt.Errorf("a %T is no metadata", object)
	}
	return m.ResourceVersion, nil
}

func (w *Watcher) definitionsChanged(changes []mirror.Change[string]) {
	w.mu.Lock()
	for _, c := range changes {
		if w.kinds[c.Key.Name] != nil {
			w.dirty[c.Key.Name] = true
		}
	}
	w.mu.Unlock()
	w.nudge()
	if w.options.Defined != nil {
		w.options.Defined()
	}
}

func (w *Watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default: // already signalled
	}
}

func (w *Watcher) supervise(ctx context.Context) {
	for {
		again := w.review(ctx)
		if !again && w.settled() {
			w.queue.open()
		}
		var timer <-chan time.Time
		if again {
			timer = time.After(retryDelay)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-timer:
		}
	}
}

// review processes the changed definitions, and reports whether one must be retried.
func (w *Watcher) review(ctx context.Context) (again bool) {
	w.mu.Lock()
	names := slices.Sorted(maps.Keys(w.dirty))
	clear(w.dirty)
	w.mu.Unlock()
	for _, name := range names {
		if err := w.look(ctx, name); err != nil && ctx.Err() == nil {
			w.options.Observer.Failed(fmt.Errorf("look at customresourcedefinition %s: %w", name, err))
			w.mu.Lock()
			w.dirty[name] = true
			w.mu.Unlock()
			again = true
		}
	}
	return again
}

func (w *Watcher) look(ctx context.Context, name string) error {
	k := w.kinds[name]
	if _, listed := w.definitions.Get("", name); !listed {
		w.vanish(k)
		return nil
	}
	raw, err := w.options.Definitions.Definition(ctx, name)
	if err != nil {
		return err
	}
	d, err := parseDefinition(raw)
	if err != nil {
		return err
	}
	version, served := d.version(k.Versions)
	k.unread = d.established() && !served
	if !served || !d.established() {
		if k.unread {
			w.options.Observer.Failed(fmt.Errorf("customresourcedefinition %s serves none of the versions %v, so its documents are not read", name, k.Versions))
		}
		w.suspend(k)
		return nil
	}
	w.serve(ctx, k, version)
	w.warn(d, k, version)
	return nil
}

// warn reports pruned fields, once for each definition and version.
func (w *Watcher) warn(d definition, k *kind, version string) {
	place, lost, err := d.pruned(version)
	if err != nil {
		w.options.Observer.Failed(fmt.Errorf("schema of customresourcedefinition %s: %w", k.name(), err))
		return
	}
	if said := version + " " + place; lost && k.warned != said {
		k.warned = said
		w.options.Observer.Pruned(k.resource(version), place)
	}
}

func (w *Watcher) serve(ctx context.Context, k *kind, version string) {
	if k.version == version {
		return
	}
	k.stop()
	w.mu.Lock()
	k.version = version
	w.mu.Unlock()
	w.options.Observer.Served(k.resource(version), true)
	k.start(ctx, w.options.Dynamic)
}

// suspend ends the watch and retains the documents: the objects still exist, but cannot be read.
func (w *Watcher) suspend(k *kind) {
	if k.version == "" {
		return
	}
	gone := k.resource(k.version)
	k.stop()
	w.mu.Lock()
	k.version, k.warned = "", ""
	w.mu.Unlock()
	w.options.Observer.Served(gone, false)
}

// vanish removes a resource with a deleted definition, and its documents.
func (w *Watcher) vanish(k *kind) {
	w.suspend(k)
	k.unread = false
	k.mirror.Forget()
}

// settled reports whether all served resources have been listed, and no awaited one exists that
// cannot be read.
func (w *Watcher) settled() bool {
	select {
	case <-w.definitions.Synced():
	default:
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.dirty) > 0 {
		return false
	}
	for _, k := range w.kinds {
		if k.unread && k.Awaited {
			return false
		}
		if k.version == "" {
			continue
		}
		select {
		case <-k.mirror.Synced():
		default:
			return false
		}
	}
	return true
}

// kind is one configured resource, served or not. Its fields belong to the supervisor; other
// goroutines read version under the Watcher's lock.
type kind struct {
	Kind
	mirror  *mirror.Mirror[sum]
	version string // the watched version; empty: not served
	unread  bool   // its definition exists, and serves no supported version
	warned  string
	cancel  context.CancelFunc
	done    chan struct{}
}

func (k *kind) resource(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: version, Resource: k.Resource}
}

func (w *Watcher) newKind(k Kind) (*kind, error) {
	m, err := mirror.New(mirror.Options[sum]{
		What:    k.name(),
		Keep:    keep,
		Same:    func(a, b sum) bool { return a == b },
		Changed: func(changes []mirror.Change[sum]) { w.changed(k, changes) },
		Listed:  w.nudge,
		Failed:  w.options.Observer.Failed,
	})
	return &kind{Kind: k, mirror: m}, err
}

func (w *Watcher) changed(k Kind, changes []mirror.Change[sum]) {
	pending := make(map[Key]*Document, len(changes))
	for _, c := range changes {
		key := Key{Group: k.Group, Resource: k.Resource, Namespace: c.Key.Namespace, Name: c.Key.Name}
		if c.Object == nil {
			pending[key] = nil
			continue
		}
		d, err := read(k, c.Object)
		if err != nil { // unreachable: keep has marshalled it
			w.options.Observer.Failed(fmt.Errorf("read %s: %w", key, err))
			continue
		}
		pending[key] = &d
	}
	w.queue.add(pending)
}

func (k *kind) start(ctx context.Context, client dynamic.Interface) {
	ctx, k.cancel = context.WithCancel(ctx)
	k.done = make(chan struct{})
	resource := client.Resource(k.resource(k.version))
	source := mirror.Source{
		Client: client,
		List: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, o)
		},
		Example: &unstructured.Unstructured{},
	}
	go func() {
		defer close(k.done)
		k.mirror.Run(ctx, source)
	}()
}

func (k *kind) stop() {
	if k.cancel != nil {
		k.cancel()
		<-k.done
		k.cancel = nil
	}
}

// silent is the default Observer.
type silent struct{}

func (silent) Pruned(schema.GroupVersionResource, string) {}
func (silent) Served(schema.GroupVersionResource, bool)   {}
func (silent) Failed(error)                               {}
