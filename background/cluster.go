package background

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/patch"
)

// The errors of a Cluster that are told apart, by errors.Is.
var (
	// ErrNotFound: there is no such object.
	ErrNotFound = errors.New("not found")
	// ErrNotServed: the API server serves no such kind.
	ErrNotServed = errors.New("the API server serves no such kind")
	// ErrExists: an object of that name is there already.
	ErrExists = errors.New("exists already")
	// ErrConflict: the object has changed since it was read.
	ErrConflict = errors.New("changed meanwhile")
)

// Kind is a kind that the API server serves, with the resource that its objects are.
type Kind struct {
	Group, Version, Kind, Resource string
	// Namespaced tells kinds in namespaces from those of the cluster.
	Namespaced bool
}

// APIVersion returns it as objects write it.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Cluster is the API server. Objects are decoded JSON. Implementations bound the time
// of each call but Watch.
type Cluster interface {
	// Served returns the kinds, each in one version, that a target may mean; none if
	// none of them is served.
	Served(ctx context.Context, target policy.Target) ([]Kind, error)
	// Kind returns the kind of an object; ErrNotServed.
	Kind(ctx context.Context, of policy.ObjectKind) (Kind, error)
	// Get returns one object; ErrNotFound.
	Get(ctx context.Context, kind Kind, namespace, name string) (map[string]any, error)
	// Each calls do for each object, in pages, until it returns an error. An empty
	// namespace means all; query is a label selector.
	Each(ctx context.Context, kind Kind, namespace, query string, do func(object map[string]any) error) error
	// Watch tells the sink of all objects until ctx ends, and tries again by itself.
	Watch(ctx context.Context, kind Kind, namespace, query string, to Sink)
	// Create makes an object and returns it as it is then; ErrExists.
	Create(ctx context.Context, kind Kind, object map[string]any) (map[string]any, error)
	// Update writes an object that has a resourceVersion, and returns it as it is
	// then; ErrConflict, ErrNotFound.
	Update(ctx context.Context, kind Kind, object map[string]any, how Writing) (map[string]any, error)
	// Patch applies operations; ErrConflict, ErrNotFound.
	Patch(ctx context.Context, kind Kind, namespace, name string, operations []patch.Operation) error
	// Delete deletes the object if it is still as it was read; ErrConflict,
	// ErrNotFound.
	Delete(ctx context.Context, kind Kind, object map[string]any) error
}

// Writing is how an object is written.
type Writing struct {
	// Apply: by server-side apply, and not as a whole.
	Apply bool
	// DryRun: not at all, but as if.
	DryRun bool
}

// Sink is told of the objects of a watch, from one goroutine. Objects are the sink's
// own.
type Sink interface {
	// Listing: all objects that are there follow by Listed, and then Synced.
	Listing()
	Listed(object map[string]any)
	Synced()
	// Changed: an object came or changed.
	Changed(object map[string]any, came bool)
	// Deleted: an object went, or is none of those that are watched any more.
	Deleted(object map[string]any)
	// Failed: the list or the watch does not work; it is tried again.
	Failed(err error)
}
