package listing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/follow"
	"github.com/quaymaster/quaymaster/workload"
)

var _ follow.Cluster = (*Lister)(nil)

// watchSeconds is the minimum requested duration of a watch. Up to half as much is added at
// random, so that not all watches end at once.
const watchSeconds = 300

// Watch implements follow.Cluster with metadata-only watches.
func (l *Lister) Watch(ctx context.Context, kind scan.Kind, since string, tell func(follow.Change)) (string, error) {
	lasts := int64(watchSeconds + rand.IntN(watchSeconds/2)) //nolint:gosec // no secret
	opened, err := l.client.Metadata.Resource(resourceOf(kind)).Watch(ctx, metav1.ListOptions{
		ResourceVersion: since, AllowWatchBookmarks: true, TimeoutSeconds: &lasts,
	})
	if err != nil {
		return since, told(err)
	}
	defer opened.Stop()
	for {
		select {
		case <-ctx.Done():
			return since, ctx.Err()
		case event, ok := <-opened.ResultChan():
			if !ok {
				return since, nil
			}
			if event.Type == watch.Error {
				return since, told(apierrors.FromObject(event.Object))
			}
			object, ok := event.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				return since, fmt.Errorf("a watch brought a %T", event.Object)
			}
			since = object.ResourceVersion
			if event.Type != watch.Bookmark {
				tell(l.change(object, event.Type == watch.Deleted))
			}
		}
	}
}

// Get implements follow.Cluster.
func (l *Lister) Get(ctx context.Context, kind scan.Kind, namespace, name string) (workload.Object, error) {
	text, err := l.client.Object(ctx, resourceOf(kind), namespace, name)
	if apierrors.IsNotFound(err) {
		return workload.Object{}, follow.ErrGone
	}
	if _, tooLarge := errors.AsType[*limit.ExceededError](err); tooLarge {
		return workload.Object{}, fmt.Errorf("%w: %w", follow.ErrUnreadable, err)
	}
	if err != nil {
		return workload.Object{}, told(err)
	}
	object, err := workload.Parse(text)
	if err != nil {
		return workload.Object{}, fmt.Errorf("%w: %w", follow.ErrUnreadable, err)
	}
	return object, nil
}

func resourceOf(kind scan.Kind) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource}
}

func (l *Lister) change(object *metav1.PartialObjectMetadata, gone bool) follow.Change {
	return follow.Change{Namespace: object.Namespace, Name: object.Name, UID: string(object.UID), Mark: l.markOf(&object.ObjectMeta), Gone: gone}
}

// markOf hashes the metadata, including the generation, which the API server increments with each
// change of other fields than metadata and status. Objects without a generation, such as
// ConfigMaps and pods of old API servers, have no mark.
func (l *Lister) markOf(of *metav1.ObjectMeta) uint64 {
	if of.Generation == 0 {
		return 0
	}
	kept := *of
	kept.ResourceVersion, kept.ManagedFields = "", nil // they change with the status, too
	text, err := json.Marshal(&kept)
	if err != nil {
		return 0 // texts, numbers and times can always be encoded
	}
	return maphash.Bytes(l.seed, text) | 1
}
