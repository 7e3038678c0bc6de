package metrics

import (
	"context"
	"net/http"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/claims"
)

// Observer observes endpoints and the gate. Metrics and Tracer implement it.
type Observer interface {
	gate.Observer
	Enter(r *http.Request, endpoint string) (ctx context.Context, done func(status int))
	Panicked(endpoint string)
}

// Observers calls several observers in order, and their end functions in reverse order.
type Observers []Observer

// Enter implements webhook.Observer.
func (all Observers) Enter(r *http.Request, endpoint string) (context.Context, func(status int)) {
	ends := make([]func(int), len(all))
	for i, o := range all {
		var ctx context.Context
		ctx, ends[i] = o.Enter(r, endpoint)
		r = r.WithContext(ctx)
	}
	return r.Context(), func(status int) {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i](status)
		}
	}
}

// Panicked implements webhook.Observer.
func (all Observers) Panicked(endpoint string) {
	for _, o := range all {
		o.Panicked(endpoint)
	}
}

// Begin implements gate.Observer.
func (all Observers) Begin(ctx context.Context, phase gate.Phase) (context.Context, func()) {
	ends := make([]func(), len(all))
	for i, o := range all {
		ctx, ends[i] = o.Begin(ctx, phase)
	}
	return ctx, func() {
		for i := len(ends) - 1; i >= 0; i-- {
			ends[i]()
		}
	}
}

// Asked implements gate.Observer.
func (all Observers) Asked(layer claims.Layer, known bool) {
	for _, o := range all {
		o.Asked(layer, known)
	}
}
