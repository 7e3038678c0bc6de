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

// The time between two attempts of a watch.
const (
	soonest = time.Second
	latest  = 30 * time.Second
)

// watcher opens a watch, as client-go's clients do.
type watcher interface {
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// watchOne calls changed whenever the one object of that name changes, until ctx ends. The object
// is also polled, so that a failing watch only delays changes.
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

// watchConfigurations reports changes of the webhook configurations, so that a changed or deleted
// one is repaired at once.
func (g *gateway) watchConfigurations(ctx context.Context, changed func()) {
	api := g.cluster.client.Typed.AdmissionregistrationV1()
	var both sync.WaitGroup
	both.Go(func() { g.watchOne(ctx, api.MutatingWebhookConfigurations(), configuration.Name, changed) })
	both.Go(func() { g.watchOne(ctx, api.ValidatingWebhookConfigurations(), configuration.Name, changed) })
	both.Wait()
}

// discoveryLag bounds the delay of an API server's discovery after a change of a definition.
const discoveryLag = 2 * time.Second

// watchDefinitions reports changes of CustomResourceDefinitions until ctx ends, so that a kind
// which a policy named before its definition is covered soon: at once, and again after
// discoveryLag.
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

// watchSecret reloads the certificate when its Secret changes, so that all replicas serve the
// same soon.
func (g *gateway) watchSecret(ctx context.Context) {
	secrets := g.cluster.client.Typed.CoreV1().Secrets(g.configuration.Namespace)
	g.watchOne(ctx, secrets, g.configuration.Certificate.Secret, func() {
		if err := g.certificates.own.Refresh(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn("the certificate's Secret changed and cannot be used", slog.String("error", err.Error()))
		}
	})
}
