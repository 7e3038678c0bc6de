package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// Between two tries of a watch.
const (
	soonest = time.Second
	latest  = 30 * time.Second
)

// watcher opens a watch; clients of client-go are such.
type watcher interface {
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// watchOne calls changed whenever the one object of that name changes, until ctx
// ends. Others look at it from time to time as well, so that a watch which does
// not work only makes them slower.
func (g *gateway) watchOne(ctx context.Context, of watcher, name string, changed func()) {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	pause := soonest
	for ctx.Err() == nil {
		opened, err := of.Watch(ctx, options)
		if err != nil {
			g.log.Debug("a watch cannot be opened", slog.String("name", name), slog.String("error", err.Error()))
		} else {
			if follow(ctx, opened, changed) > 0 {
				pause = soonest
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, latest)
		}
	}
}

// follow calls changed for each event, of which the first says what there is, until
// the watch or ctx ends. It returns how many came.
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

// watchConfigurations tells of changes of the webhook configurations, so that one
// that somebody changed or deleted is mended at once.
func (g *gateway) watchConfigurations(ctx context.Context, changed func()) {
	api := g.cluster.client.Typed.AdmissionregistrationV1()
	var both sync.WaitGroup
	both.Go(func() { g.watchOne(ctx, api.MutatingWebhookConfigurations(), configuration.Name, changed) })
	both.Go(func() { g.watchOne(ctx, api.ValidatingWebhookConfigurations(), configuration.Name, changed) })
	both.Wait()
}

// discoveryLag is how much later than of a definition an API server may speak of its
// kind in discovery.
const discoveryLag = 2 * time.Second

// watchDefinitions tells of changes of CustomResourceDefinitions until ctx ends, so
// that a kind which a policy named before it was there is asked about soon: at once,
// and again when discovery must know.
func watchDefinitions(ctx context.Context, of changing, changed func()) {
	next := of.Changed()
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-next:
			next, again = of.Changed(), time.After(discoveryLag)
		case <-again:
			again = nil
		}
		changed()
	}
}

// watchSecret has the certificate looked at when its Secret changes, so that all
// replicas serve the same soon.
func (g *gateway) watchSecret(ctx context.Context) {
	secrets := g.cluster.client.Typed.CoreV1().Secrets(g.configuration.Namespace)
	g.watchOne(ctx, secrets, g.configuration.Certificate.Secret, func() {
		if err := g.certificates.own.Refresh(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn("the certificate's Secret changed and cannot be used", slog.String("error", err.Error()))
		}
	})
}
