package webhooks

import (
	"context"
	"sync"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// watch reports changes of the webhook configurations, so that a changed or deleted one is
// repaired at once.
func (c Config) watch(ctx context.Context, changed func()) {
	api := c.Client.Typed.AdmissionregistrationV1()
	var both sync.WaitGroup
	both.Go(func() {
		gateway.WatchObject(ctx, api.MutatingWebhookConfigurations(), configuration.Name, c.Log, changed)
	})
	both.Go(func() {
		gateway.WatchObject(ctx, api.ValidatingWebhookConfigurations(), configuration.Name, c.Log, changed)
	})
	both.Wait()
}

// follow reports changes of either until ctx ends.
func follow(ctx context.Context, changed func(), one, other gateway.Changing) {
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
		changed()
	}
}
