package gateway

import (
	"context"
	"log/slog"
	"sync"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// watchConfigurations reports changes of the webhook configurations, so that a changed or deleted
// one is repaired at once.
func (g *assembly) watchConfigurations(ctx context.Context, changed func()) {
	api := g.cluster.Client.Typed.AdmissionregistrationV1()
	var both sync.WaitGroup
	both.Go(func() {
		gateway.WatchObject(ctx, api.MutatingWebhookConfigurations(), configuration.Name, g.log, changed)
	})
	both.Go(func() {
		gateway.WatchObject(ctx, api.ValidatingWebhookConfigurations(), configuration.Name, g.log, changed)
	})
	both.Wait()
}

// watchSecret reloads the certificate when its Secret changes, so that all replicas serve the
// same soon.
func (g *assembly) watchSecret(ctx context.Context) {
	secrets := g.cluster.Client.Typed.CoreV1().Secrets(g.configuration.Namespace)
	gateway.WatchObject(ctx, secrets, g.configuration.Certificate.Secret, g.log, func() {
		if err := g.certificates.Refresh(ctx); err != nil && ctx.Err() == nil {
			g.log.Warn("the certificate's Secret changed and cannot be used", slog.String("error", err.Error()))
		}
	})
}

// notice passes changes of either on until ctx ends. to holds one value and need not be read for
// each change.
func notice(ctx context.Context, to chan<- struct{}, one, other gateway.Changing) {
	first, second := one.Changed(), other.Changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-first:
			first = one.Changed()
		case <-second:
			second = other.Changed()
		}
		select {
		case to <- struct{}{}:
		default:
		}
	}
}
