package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
)

// router routes requests to the endpoints by path.
func (s *Server) router() http.Handler {
	mux := http.NewServeMux()
	for path, endpoint := range s.config.Endpoints {
		handler := &guarded{server: s, endpoint: endpoint, name: strings.TrimPrefix(path, "/")}
		mux.Handle(path, handler)
		if endpoint.Below {
			mux.Handle(path+"/", handler)
		}
	}
	return s.requestReconnects(mux)
}

// requestReconnects asks clients to reconnect once the server is about to stop. It sets "Connection: close"
// in HTTP/1.1, which net/http turns into a GOAWAY in HTTP/2.
func (s *Server) requestReconnects(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.reconnecting.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// guarded wraps an endpoint's handler: it authenticates the client, limits concurrent requests
// and recovers panics.
type guarded struct {
	server   *Server
	endpoint Endpoint
	name     string
}

// ServeHTTP implements http.Handler.
func (t *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, done := t.server.options.observer.Enter(r, t.name)
	response := &statusWriter{ResponseWriter: w}
	defer func() { done(response.status) }()
	defer t.recoverPanic(ctx, response)
	if err := t.endpoint.Callers.admit(r.TLS, time.Now()); err != nil {
		t.server.clientErrors.Log(ctx, slog.LevelWarn, "client rejected", slog.String("endpoint", t.name),
			slog.String("caller", r.RemoteAddr), slog.String("error", err.Error()))
		http.Error(response, err.Error(), http.StatusForbidden)
		return
	}
	place, _, ok := t.server.requests.TryEnter(fairqueue.Claim{Tenant: hostOf(r.RemoteAddr)})
	if !ok {
		http.Error(response, "too many concurrent requests in total or from this address; retry", http.StatusServiceUnavailable)
		return
	}
	defer place.Leave()
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	t.endpoint.Handler.ServeHTTP(response, r)
}

// recoverPanic answers for a handler that panicked. A response that has already begun is aborted, so that
// the client cannot take a partial response for a complete one.
func (t *guarded) recoverPanic(ctx context.Context, w *statusWriter) {
	what := recover()
	if what == nil {
		return
	}
	if what == http.ErrAbortHandler { //nolint:errorlint // a panic's value is compared, as net/http does
		panic(what)
	}
	t.server.options.observer.Panicked(t.name)
	stack := debug.Stack()
	t.server.config.Log.LogAttrs(ctx, slog.LevelError, "internal error: handler panicked", slog.String("endpoint", t.name),
		slog.String("panic", bounded(fmt.Sprint(what), maxLine)), slog.String("stack", string(stack[:min(len(stack), maxStack)])))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	http.Error(w, "internal error; see the gateway's log", http.StatusInternalServerError)
}

// statusWriter records the status of a response; 0 until the response has begun.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *statusWriter) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *statusWriter) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap returns the underlying writer to http.ResponseController.
func (a *statusWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// bounded truncates untrusted text and marks the cut.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "… (cut)"
}
