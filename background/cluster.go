package background

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
)

// The errors of a Cluster that are handled separately, by errors.Is.
var (
	// ErrNotFound means: the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotServed means: the API server does not serve the kind.
	ErrNotServed = errors.New("the API server serves no such kind")
	// ErrExists means: an object with that name already exists.
	ErrExists = errors.New("exists already")
	// ErrConflict means: the object has changed since it was read.
	ErrConflict = errors.New("changed meanwhile")
	// ErrRefused means: the API server, or a webhook of it, denied a deletion, and nothing has changed.
	ErrRefused = errors.New("refused")
)

// Kind is a kind that the API server serves, with its resource.
type Kind struct {
	Group, Version, Kind, Resource string
	// Namespaced distinguishes namespaced from cluster-scoped kinds.
	Namespaced bool
}

// APIVersion returns the apiVersion of its objects.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// Cluster is a client of the API server. Objects are decoded JSON. Implementations bound the
// duration of each call but Watch.
type Cluster interface {
	// Served returns the kinds, each in one version, that a target may match; empty if none of
	// them is served.
	Served(ctx context.Context, target policy.Target) ([]Kind, error)
	// Kind returns the kind of an object; ErrNotServed.
	Kind(ctx context.Context, of policy.ObjectKind) (Kind, error)
	// Get returns one object; ErrNotFound.
	Get(ctx context.Context, kind Kind, namespace, name string) (map[string]any, error)
	// Each calls do for each object, in pages, until it returns an error. An empty
	// namespace means all; query is a label selector.
	Each(ctx context.Context, kind Kind, namespace, query string, do func(object map[string]any) error) error
	// Watch passes all objects to the sink until ctx ends, and retries by itself. To a Follower it
	// also passes deletions since its position.
	Watch(ctx context.Context, kind Kind, namespace, query string, to Sink)
	// Create creates an object and returns the stored one; ErrExists.
	Create(ctx context.Context, kind Kind, object map[string]any) (map[string]any, error)
	// Update updates an object with a resourceVersion, and returns the stored one; ErrConflict,
	// ErrNotFound.
	Update(ctx context.Context, kind Kind, object map[string]any, how Writing) (map[string]any, error)
	// Patch applies operations; ErrConflict, ErrNotFound.
	Patch(ctx context.Context, kind Kind, namespace, name string, operations []patch.Operation) error
	// Delete deletes the object if it is unchanged since it was read; ErrConflict, ErrNotFound.
	Delete(ctx context.Context, kind Kind, object map[string]any) error
}

// Writing is the mode of a write.
type Writing struct {
	// Apply: by server-side apply, instead of replacing the object.
	Apply bool
	// DryRun: the API server validates the write and does not store it.
	DryRun bool
}

// Sink receives the objects of a watch, from one goroutine. It owns the objects.
type Sink interface {
	// Listing: a list of all objects follows by Listed, ended by Synced.
	Listing()
	Listed(object map[string]any)
	Synced()
	// Changed: an object was created or changed.
	Changed(object map[string]any, came bool)
	// Deleted: an object was deleted, or no longer matches the watch.
	Deleted(object map[string]any)
	// Failed: the list or the watch failed; it is retried.
	Failed(err error)
}

// Follower is a Sink that receives each deletion, also those while nothing watched: after a list,
// the watch continues from the position of the Follower.
type Follower interface {
	Sink
	// Position returns the resource version after which deletions are to be passed; empty: after
	// the list.
	Position() string
	// Reached: everything up to a resource version was passed.
	Reached(version string)
	// Missed: the API server no longer has the deletions since the position, and the watch continues
	// from the list.
	Missed(err error)
}
