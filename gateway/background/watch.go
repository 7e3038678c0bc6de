package background

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	pause := gateway.WatchPause
	for ctx.Err() == nil {
		to.Listing()
		version, err := c.pages(ctx, kind, namespace, query, func(object map[string]any) error {
			to.Listed(object)
			return ctx.Err()
		})
		if err == nil {
			pause = gateway.WatchPause
			to.Synced()
			err = follow(ctx, c.resource(kind, namespace), query, version, to)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) { // otherwise a usual reason to list again
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

// follow watches from a version on, repeatedly, until a watch fails.
func follow(ctx context.Context, resource dynamic.ResourceInterface, query, version string, to background.Sink) error {
	for {
		lasts := int64(watchSeconds + rand.IntN(watchSeconds/2)) //nolint:gosec // no secret
		opened, err := resource.Watch(ctx, metav1.ListOptions{
			LabelSelector: query, ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &lasts,
		})
		if err != nil {
			return translated(err)
		}
		began := time.Now()
		next, err := events(ctx, opened, version, to)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if next == version && time.Since(began) < gateway.WatchPause {
			return errors.New("a watch ended at once")
		}
		version = next
	}
}

// events passes on the events of a watch until it ends, and returns the version to continue from.
func events(ctx context.Context, opened watch.Interface, version string, to background.Sink) (string, error) {
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
			switch event.Type {
			case watch.Added:
				to.Changed(floats(object.Object), true)
			case watch.Modified:
				to.Changed(floats(object.Object), false)
			case watch.Deleted:
				to.Deleted(floats(object.Object))
			}
		}
	}
}
