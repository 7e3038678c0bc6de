package endpoints

import (
	"net/http"
	"sync/atomic"
)

// Placeholder is the placeholder of an endpoint. Until the endpoint is ready, the response is an
// HTTP error, and the API server applies the webhook's own failure policy. That was made from the
// policies, which are not loaded here yet.
type Placeholder struct{ Handler atomic.Pointer[http.Handler] }

// ServeHTTP implements http.Handler.
func (e *Placeholder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := e.Handler.Load()
	if handler == nil {
		http.Error(w, "the gateway is starting; try again in a moment", http.StatusServiceUnavailable)
		return
	}
	(*handler).ServeHTTP(w, r)
}
