package gateway

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// WatchPause and MaxWatchPause bound the time between two attempts of a watch.
const (
	WatchPause    = time.Second
	MaxWatchPause = 30 * time.Second
)

// Watcher opens a watch, as the clients of client-go do.
type Watcher interface {
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// WatchObject calls changed whenever the one object of that name changes, until ctx ends. The
// caller polls the object as well, so that a failing watch only delays changes.
func WatchObject(ctx context.Context, of Watcher, name string, log *slog.Logger, changed func()) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	pause := WatchPause
	for ctx.Err() == nil {
		opened, err := of.Watch(ctx, options)
		if err != nil {
			log.Debug("a watch cannot be opened", slog.String("name", name), slog.String("error", err.Error()))
		} else if follow(ctx, opened, changed) > 0 {
			pause = WatchPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, MaxWatchPause)
		}
	}
}

// follow calls changed for each event, of which the first contains the existing state, until the
// watch or ctx ends. It returns the number of events.
func follow(ctx context.Context, opened watch.Interface, changed func()) (events int) {
	defer opened.Stop()
	for {
		select {
		case <-ctx.Done():
			return events
		case _, ok := <-opened.ResultChan():
			if !ok {
				return events
			}
			events++
			changed()
		}
	}
}
