package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/quaymaster/quaymaster/cluster/internal/mirror"
)

// liveTTL is the cache lifetime of a looked-up namespace that is not in the mirror yet; the
// mirror receives it within moments. maxLive bounds these entries, in bytes.
const (
	liveTTL = time.Second
	maxLive = 1 << 20
)

// liveQPS and liveBurst bound these lookups: a client of an endpoint can invent names, and they
// share the client's limit with requests that admission waits for.
const (
	liveQPS   = 20
	liveBurst = 40
)

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// NamespaceOptions are the dependencies of Namespaces.
type NamespaceOptions struct {
	// Client is required.
	Client metadata.Interface
	// Failed is called when the watch failed; it is retried. May be nil.
	Failed func(error)
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Namespaces provides the labels of all namespaces, by a mirror and lookups of namespaces that
// were just created. It is safe for concurrent use. Create one with NewNamespaces.
type Namespaces struct {
	client metadata.Interface
	mirror *mirror.Mirror[map[string]string]
	live   *lookup[map[string]string]
	limit  flowcontrol.RateLimiter // of live
}

// NewNamespaces creates Namespaces; the client is required.
func NewNamespaces(o NamespaceOptions) (*Namespaces, error) {
	if o.Client == nil {
		return nil, errors.New("namespaces: Client is required")
	}
	n := &Namespaces{client: o.Client, limit: flowcontrol.NewTokenBucketRateLimiter(liveQPS, liveBurst)}
	var err error
	n.mirror, err = mirror.New(mirror.Options[map[string]string]{What: "namespaces", Keep: labelsOf, Failed: o.Failed})
	if err != nil {
		return nil, err
	}
	n.live, err = newLookup("namespace", limits{ttl: liveTTL, cost: maxLive, now: o.Now}, n.fetch)
	return n, err
}

// Run updates the mirror until ctx ends.
func (n *Namespaces) Run(ctx context.Context) {
	defer n.live.close()
	n.mirror.Run(ctx, mirror.Metadata(n.client, namespacesResource))
}

// Ready is closed when all namespaces have been listed once.
func (n *Namespaces) Ready() <-chan struct{} { return n.mirror.Synced() }

// Labels returns the labels of a namespace, which the caller owns. A missing namespace is
// ErrNotFound, and a failed lookup ErrUnavailable or ErrForbidden. Unknown labels are thus
// distinct from empty ones.
func (n *Namespaces) Labels(ctx context.Context, name string) (map[string]string, error) {
	if labels, ok := n.mirror.Get("", name); ok {
		return maps.Clone(labels), nil
	}
	labels, err := n.live.get(ctx, "", name)
	return maps.Clone(labels), err
}

func (n *Namespaces) fetch(ctx context.Context, _, name string) (map[string]string, int, error) {
	if !n.limit.TryAccept() {
		return nil, 0, errors.New("too many namespaces at once that are not known")
	}
	object, err := n.client.Resource(namespacesResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, 0, err
	}
	labels, err := labelsOf(object)
	return labels, object.Size(), err
}

// labelsOf returns a map even for no labels, so that nil means unknown.
func labelsOf(object runtime.Object) (map[string]string, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("a %T is no metadata", object)
	}
	labels := make(map[string]string, len(m.Labels))
	maps.Copy(labels, m.Labels)
	return labels, nil
}
