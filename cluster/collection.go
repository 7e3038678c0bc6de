package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// collectionPage is how many objects are asked for at once, and maxPage bounds
	// the answer in bytes, managedFields included.
	collectionPage = 100
	maxPage        = 16 << 20
	// pageTimeout bounds one page.
	pageTimeout = 30 * time.Second
	// DefaultCollectionPause is the least time between two tellings, so that what
	// changes all the time is told once a second, and the pause after a first failure.
	DefaultCollectionPause = time.Second
	// watchTime is about how long a watch is left open; the API server ends it, and
	// it is opened again where it ended.
	watchTime = 5 * time.Minute
	// longestCollectionPause is between two tries of what goes on failing.
	longestCollectionPause = 30 * time.Second
	// exceededPauses is how many pauses there are before what exceeded the bound is
	// read again: it is a lot to read for nothing.
	exceededPauses = 60
)

// CollectionOptions are what a Collection needs.
type CollectionOptions struct {
	// Client is required.
	Client *Client
	// At is where the objects are: a resource, without a subresource and a name.
	At Place
	// Most bounds all objects together, in the bytes that Weigh counts; both are
	// required.
	Most  int
	Weigh func(object any) int
	// Changed is told all objects, sorted by namespace and name and without
	// metadata.managedFields, whenever some have changed, at most once in Pause and
	// from one goroutine. They are shared, and not to be changed. Required.
	Changed func(objects []any)
	// Failed is told why nobody knows, or why changes are missed: an *Error, or one
	// that wraps a *limit.ExceededError. It is tried again. Required.
	Failed func(error)
	// Pause is the least time between two tellings, and after a first failure; 0 means
	// 1 s, less is refused.
	Pause time.Duration
}

// Collection knows all objects of a resource: a list in pages, and a watch from
// there on. Secrets are not among them. Make one with NewCollection.
type Collection struct {
	options CollectionOptions
	raw     rest.Interface
	watches dynamic.ResourceInterface

	objects map[types.NamespacedName]weighed
	size    int
	version string // to watch from; empty: a list is due
	failed  bool   // said so since it was last told
}

type weighed struct {
	object map[string]any
	weight int
}

// NewCollection makes a Collection; it refuses options that mean nothing, and
// places where no objects can be.
func NewCollection(o CollectionOptions) (*Collection, error) {
	if o.Client == nil || o.Most <= 0 || o.Weigh == nil || o.Changed == nil || o.Failed == nil || o.Pause < 0 || o.At.Name != "" || strings.Contains(o.At.Resource, "/") {
		return nil, errors.New("collection: Client, Most, Weigh, Changed and Failed are required, and a place without a name")
	}
	if err := (objectsKey{Place: o.At}).check(); err != nil {
		return nil, fmt.Errorf("collection: %w", err)
	}
	o.Pause = cmp.Or(o.Pause, DefaultCollectionPause)
	watches := dynamic.ResourceInterface(o.Client.Dynamic.Resource(schema.GroupVersionResource{Group: o.At.Group, Version: o.At.Version, Resource: o.At.Resource}))
	if o.At.Namespace != "" {
		watches = o.Client.Dynamic.Resource(schema.GroupVersionResource{Group: o.At.Group, Version: o.At.Version, Resource: o.At.Resource}).Namespace(o.At.Namespace)
	}
	return &Collection{options: o, raw: o.Client.raw, watches: watches}, nil
}

// Run tells what there is until ctx ends.
func (c *Collection) Run(ctx context.Context) {
	pause := c.options.Pause
	for ctx.Err() == nil {
		began := time.Now()
		err := c.turn(ctx)
		switch lasted := time.Since(began); {
		case ctx.Err() != nil:
			return
		case err == nil && lasted >= c.options.Pause:
			pause = c.options.Pause
			continue
		case err == nil: // a watch that ends at once is not opened without end
		case expired(err):
			c.version = "" // the ordinary reason to list again
		default:
			c.failed = true
			c.options.Failed(objectsKey{Place: c.options.At}.classify(err))
			if _, exceeded := errors.AsType[*limit.ExceededError](err); exceeded {
				pause = exceededPauses * c.options.Pause
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
			pause = min(2*pause, longestCollectionPause)
		}
	}
}

// expired reports whether an error says only that time has passed.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// turn lists if a list is due, and watches until the watch ends.
func (c *Collection) turn(ctx context.Context) error {
	if c.version == "" {
		if err := c.list(ctx); err != nil {
			return err
		}
	}
	return c.watch(ctx)
}

// list reads all pages, and tells what they have.
func (c *Collection) list(ctx context.Context) error {
	objects, size, version, token := map[types.NamespacedName]weighed{}, 0, "", ""
	for {
		page, err := c.page(ctx, token)
		if err != nil {
			return err
		}
		items, _ := page["items"].([]any)
		for _, item := range items {
			object, ok := item.(map[string]any)
			if !ok {
				return fmt.Errorf("list %s: an item is no object", c.options.At)
			}
			key, one := c.weigh(complete(object, page))
			objects[key], size = one, size+one.weight-objects[key].weight
			if size > c.options.Most {
				return c.exceeded()
			}
		}
		if metadata, ok := page["metadata"].(map[string]any); ok {
			version, _ = metadata["resourceVersion"].(string)
		}
		if token = continued(page); token == "" {
			break
		}
	}
	if version == "" {
		return fmt.Errorf("list %s: the answer has no resourceVersion", c.options.At)
	}
	c.objects, c.size, c.version = objects, size, version
	c.tell()
	return nil
}

func (c *Collection) page(ctx context.Context, token string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	request := c.raw.Get().AbsPath(objectsKey{Place: c.options.At}.path()...).Param("limit", fmt.Sprint(collectionPage))
	if token != "" {
		request = request.Param("continue", token)
	}
	page, _, err := ask(ctx, request, maxPage, c.options.At.String())
	return page, err
}

// complete says of an item of a list what it is, which stands beside the items.
func complete(object, list map[string]any) map[string]any {
	if object["kind"] == nil {
		if kind, ok := list["kind"].(string); ok {
			object["kind"] = strings.TrimSuffix(kind, "List")
		}
	}
	if object["apiVersion"] == nil {
		object["apiVersion"] = list["apiVersion"]
	}
	return object
}

func (c *Collection) weigh(object map[string]any) (types.NamespacedName, weighed) {
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	u := unstructured.Unstructured{Object: object}
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, weighed{object, c.options.Weigh(object)}
}

// exceeded forgets everything: a part would say that the rest is not there.
func (c *Collection) exceeded() error {
	c.objects, c.size, c.version = nil, 0, ""
	return &limit.ExceededError{What: "what there is of " + c.options.At.String(), Most: int64(c.options.Most)}
}

// watch follows changes until the API server ends the watch, which is no error.
func (c *Collection) watch(ctx context.Context) error {
	seconds := int64(watchTime/time.Second) + rand.Int64N(int64(watchTime/time.Second))
	opened, err := c.watches.Watch(ctx, metav1.ListOptions{ResourceVersion: c.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		return err
	}
	defer opened.Stop()
	if c.failed { // what was missed is about to come: the API server took the version
		c.tell()
	}
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-due:
			due = nil
			c.tell()
		case event, ok := <-opened.ResultChan():
			if !ok {
				if due != nil {
					c.tell()
				}
				return nil
			}
			changed, err := c.take(event)
			if err != nil {
				return err
			}
			if changed && due == nil {
				due = time.After(c.options.Pause)
			}
		}
	}
}

// take follows one event, and reports whether an object changed.
func (c *Collection) take(event watch.Event) (changed bool, err error) {
	if event.Type == watch.Error {
		return false, apierrors.FromObject(event.Object)
	}
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return false, fmt.Errorf("watch %s: a %T is no object", c.options.At, event.Object)
	}
	if version := u.GetResourceVersion(); version != "" {
		c.version = version
	}
	switch event.Type {
	case watch.Bookmark:
		return false, nil
	case watch.Added, watch.Modified:
		key, one := c.weigh(u.Object)
		c.size += one.weight - c.objects[key].weight
		c.objects[key] = one
		if c.size > c.options.Most {
			return false, c.exceeded()
		}
	case watch.Deleted:
		key := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
		c.size -= c.objects[key].weight
		delete(c.objects, key)
	default:
		return false, fmt.Errorf("watch %s: an event of type %q", c.options.At, event.Type)
	}
	return true, nil
}

// tell tells what there is.
func (c *Collection) tell() {
	c.failed = false
	keys := slices.SortedFunc(maps.Keys(c.objects), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	list := make([]any, len(keys))
	for i, key := range keys {
		list[i] = c.objects[key].object
	}
	c.options.Changed(list)
}
