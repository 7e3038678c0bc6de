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
	// collectionPage is the number of objects of one list request. maxPage bounds its response in
	// bytes, managedFields included.
	collectionPage = 100
	maxPage        = 16 << 20
	// pageTimeout bounds one page.
	pageTimeout = 30 * time.Second
	// DefaultCollectionPause is the minimum time between two notifications, so that continuous
	// changes cause one a second, and the pause after a first failure.
	DefaultCollectionPause = time.Second
	// watchTime is the approximate duration of a watch. The API server ends it, and it is
	// resumed.
	watchTime = 5 * time.Minute
	// longestCollectionPause bounds the pause between two attempts.
	longestCollectionPause = 30 * time.Second
	// exceededPauses is the number of pauses before a collection that exceeded its bound is read
	// again, since the read is expensive.
	exceededPauses = 60
)

// CollectionOptions are the dependencies of a Collection.
type CollectionOptions struct {
	// Client is required.
	Client *Client
	// At is the resource of the objects, without a subresource and a name.
	At Place
	// Most bounds all objects together, in bytes as counted by Weigh; both are required.
	Most  int
	Weigh func(object any) int
	// Changed is called with all objects, sorted by namespace and name and without
	// metadata.managedFields, after changes, at most once in Pause and from one goroutine. The
	// objects are shared and must not be modified. Required.
	Changed func(objects []any)
	// Failed is called when the objects are unknown or changes may be missed: with an *Error, or
	// an error that wraps a *limit.ExceededError. The operation is retried. Required.
	Failed func(error)
	// Pause is the minimum time between two notifications, and after a first failure; 0 means 1
	// s, and negative values are an error.
	Pause time.Duration
}

// Collection caches all objects of a resource, by a list in pages and a watch from there on.
// Secrets are refused. Create one with NewCollection.
type Collection struct {
	options CollectionOptions
	raw     rest.Interface
	watches dynamic.ResourceInterface

	objects map[types.NamespacedName]weighed
	size    int
	version string // of the watch; empty: a list is due
	// pending: a list or an error came since the last notification. The next watch that opens
	// notifies: a list alone is out of date from the first change on.
	pending bool
}

type weighed struct {
	object map[string]any
	weight int
}

// NewCollection creates a Collection, and returns an error for invalid options or an invalid
// resource.
func NewCollection(o CollectionOptions) (*Collection, error) {
	if o.Client == nil || o.Most <= 0 || o.Weigh == nil || o.Changed == nil || o.Failed == nil ||
		o.Pause < 0 || o.At.Name != "" || strings.Contains(o.At.Resource, "/") {
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

// Run maintains the collection until ctx ends.
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
		case err == nil: // prevents a busy loop of watches that end at once
		case expired(err):
			c.version = "" // the ordinary reason to list again
		default:
			c.pending = true
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

// expired reports whether an error means only that the resourceVersion has expired.
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

// list reads all pages.
func (c *Collection) list(ctx context.Context) error {
	objects, size, version, token := map[types.NamespacedName]weighed{}, 0, "", ""
	for {
		page, err := c.page(ctx, token)
		if err != nil {
			return err
		}
		items, _ := complete(page)["items"].([]any)
		for _, item := range items {
			object, ok := item.(map[string]any)
			if !ok {
				return fmt.Errorf("list %s: an item is no object", c.options.At)
			}
			key, one := c.weigh(object)
			objects[key], size = one, size+one.weight-objects[key].weight
			if size > c.options.Most {
				return c.exceeded()
			}
		}
		if metadata, ok := page["metadata"].(map[string]any); ok {
			version, _ = metadata["resourceVersion"].(string)
		}
		token = continued(page)
		if token == "" {
			break
		}
	}
	if version == "" {
		return fmt.Errorf("list %s: the answer has no resourceVersion", c.options.At)
	}
	c.objects, c.size, c.version, c.pending = objects, size, version, true
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

// complete adds kind and apiVersion to the items of a list, which has them once for all items.
func complete(list map[string]any) map[string]any {
	items, _ := list["items"].([]any)
	for _, item := range items {
		object, ok := item.(map[string]any)
		if kind, known := list["kind"].(string); ok && known && object["kind"] == nil {
			object["kind"] = strings.TrimSuffix(kind, "List")
		}
		if version := list["apiVersion"]; ok && version != nil && object["apiVersion"] == nil {
			object["apiVersion"] = version
		}
	}
	return list
}

func (c *Collection) weigh(object map[string]any) (types.NamespacedName, weighed) {
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	u := unstructured.Unstructured{Object: object}
	return types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}, weighed{object, c.options.Weigh(object)}
}

// exceeded drops all objects: a partial collection would imply that the others do not exist.
func (c *Collection) exceeded() error {
	c.objects, c.size, c.version = nil, 0, ""
	return &limit.ExceededError{What: "what there is of " + c.options.At.String(), Most: int64(c.options.Most)}
}

// watch follows changes until the API server ends the watch, which is no error.
func (c *Collection) watch(ctx context.Context) error {
	seconds := int64(watchTime/time.Second) + rand.Int64N(int64(watchTime/time.Second))
	opened, err := c.watches.Watch(ctx, metav1.ListOptions{ResourceVersion: c.version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if err != nil {
		return objectsKey{Place: c.options.At, verb: "watch"}.classify(err)
	}
	defer opened.Stop()
	if c.pending { // the API server accepted the version, so the missed changes follow
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

// take processes one event, and reports whether an object changed.
func (c *Collection) take(event watch.Event) (changed bool, err error) {
	if event.Type == watch.Error {
		return false, apierrors.FromObject(event.Object)
	}
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return false, fmt.Errorf("watch %s: a %T is no object", c.options.At, event.Object)
	}
	c.version = cmp.Or(u.GetResourceVersion(), c.version)
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

// tell notifies of the current objects.
func (c *Collection) tell() {
	c.pending = false
	keys := slices.SortedFunc(maps.Keys(c.objects), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	list := make([]any, len(keys))
	for i, key := range keys {
		list[i] = c.objects[key].object
	}
	c.options.Changed(list)
}
