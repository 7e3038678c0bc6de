package background

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/gateway"
)

// watchSeconds is the least requested duration of one watch. Up to half as much is added at
// random, so that not all end at once.
const watchSeconds = 300

// Watch implements background.Cluster. Objects are listed in pages, and each page is passed on
// before the next is read. So the objects of a large cluster are never in memory all at once.
func (c *apiServer) Watch(ctx context.Context, kind background.Kind, namespace, query string, to background.Sink) {
	c.watch(ctx, kind, scope{namespace: namespace, labels: query}, to)
}

func (c *apiServer) watch(ctx context.Context, kind background.Kind, in scope, to background.Sink) {
	pause := gateway.WatchPause
	for ctx.Err() == nil {
		to.Listing()
		version, err := c.pages(ctx, kind, in, func(object map[string]any) error {
			to.Listed(object)
			return ctx.Err()
		})
		if err == nil {
			pause = gateway.WatchPause
			to.Synced()
			err = (&following{resource: c.resource(kind, in.namespace), in: in, to: to}).follow(ctx, version)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !isExpired(err) { // otherwise a usual reason to list again
			to.Failed(err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
		pause = min(2*pause, gateway.MaxWatchPause)
	}
}

// following is a watch after a list.
type following struct {
	resource dynamic.ResourceInterface
	in       scope
	to       background.Sink
	// listed is the version of the list: up to it only deletions are passed on.
	listed string
}

// follow watches from the version of a list on, or from an earlier position of the sink, repeatedly,
// until a watch fails.
func (f *following) follow(ctx context.Context, listed string) error {
	f.listed = listed
	version := f.position()
	for {
		began := time.Now()
		next, err := f.watch(ctx, version)
		switch {
		case ctx.Err() != nil:
			return err
		case isExpired(err) && f.replays(next):
			if to, is := f.to.(background.Follower); is {
				to.Missed(err)
			}
			next = listed
		case err != nil:
			return err
		case next == version && time.Since(began) < gateway.WatchPause:
			return errors.New("a watch ended at once")
		}
		version = next
	}
}

// position returns the version from which to watch: that of the list, or an earlier one of a Follower.
func (f *following) position() string {
	to, is := f.to.(background.Follower)
	if !is {
		return f.listed
	}
	at := to.Position()
	if at == "" {
		to.Reached(f.listed)
		return f.listed
	}
	switch order, err := resourceversion.CompareResourceVersion(at, f.listed); {
	case err != nil:
		to.Missed(err)
	case order > 0: // the API server was restored from a backup
		to.Missed(fmt.Errorf("the list has version %s, before %s", f.listed, at))
	default:
		return at
	}
	to.Reached(f.listed)
	return f.listed
}

// replays reports whether a version is before that of the list.
func (f *following) replays(version string) bool {
	if version == f.listed {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, f.listed)
	return err == nil && order < 0
}

// isExpired reports whether the API server no longer has the events from a version on.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// watch watches from a version on until the watch ends. It returns the version to continue from.
func (f *following) watch(ctx context.Context, version string) (string, error) {
	lasts := int64(watchSeconds + rand.IntN(watchSeconds/2)) //nolint:gosec // no secret
	options := f.in.options()
	options.ResourceVersion, options.AllowWatchBookmarks, options.TimeoutSeconds = version, true, &lasts
	opened, err := f.resource.Watch(ctx, options)
	if err != nil {
		return version, translated(err)
	}
	defer opened.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, ok := <-opened.ResultChan():
			if !ok {
				return version, nil
			}
			if event.Type == watch.Error {
				return version, apierrors.FromObject(event.Object)
			}
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok {
				return version, fmt.Errorf("a watch brought a %T", event.Object)
			}
			version = object.GetResourceVersion()
			f.pass(event.Type, object, version)
		}
	}
}

// pass passes on an event. Of an object that was changed before the list, the list has a later state.
func (f *following) pass(what watch.EventType, object *unstructured.Unstructured, version string) {
	isNew := version != f.listed && !f.replays(version)
	switch what {
	case watch.Added, watch.Modified:
		if isNew {
			f.to.Changed(floats(object.Object), what == watch.Added)
		}
	case watch.Deleted:
		f.to.Deleted(floats(object.Object))
	}
	if to, is := f.to.(background.Follower); is {
		to.Reached(version)
	}
}
