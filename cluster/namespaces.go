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

// liveTTL is how long a namespace that is not in the mirror yet is remembered
// from a look-up; the mirror has it within moments. maxLive bounds them, in
// bytes.
const (
	liveTTL = time.Second
	maxLive = 1 << 20
)

// liveQPS and liveBurst bound these look-ups: whoever reaches a door can make names up, and
// they share the client's own limit with what admission waits for.
const (
	liveQPS   = 20
	liveBurst = 40
)

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// NamespaceOptions are what Namespaces need.
type NamespaceOptions struct {
	// Client is required.
	Client metadata.Interface
	// Failed is told when the watch does not work; it is tried again. May be nil.
	Failed func(error)
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Namespaces knows the labels of all namespaces: a mirror of their labels, and a
// look-up for one that was made a moment ago. It is safe for concurrent use.
// Make one with NewNamespaces.
type Namespaces struct {
	client metadata.Interface
	mirror *mirror.Mirror[map[string]string]
	live   *lookup[map[string]string]
	limit  flowcontrol.RateLimiter // of live
}

// NewNamespaces makes Namespaces; it refuses options without a client.
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

// Run keeps the mirror true until ctx ends.
func (n *Namespaces) Run(ctx context.Context) {
	defer n.live.close()
	n.mirror.Run(ctx, mirror.Metadata(n.client, namespacesResource))
}

// Ready is closed when all namespaces have been listed once.
func (n *Namespaces) Ready() <-chan struct{} { return n.mirror.Synced() }

// Labels returns the labels of a namespace, the caller's own. One that is not
// there is ErrNotFound, and one that could not be looked up ErrUnavailable or
// ErrForbidden: there are no labels then, which is not the same as none.
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
