package discovery

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
)

// discoveryLag bounds the delay of an API server's discovery after a change of a definition.
const discoveryLag = 2 * time.Second

// WatchDefinitions reports changes of CustomResourceDefinitions until ctx ends, so that a kind
// which a policy named before its definition is covered soon: at once, and again after
// discoveryLag.
func WatchDefinitions(ctx context.Context, of gateway.Changing, changed func()) {
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
