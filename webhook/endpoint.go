package webhook

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/internal/fair"
)

// entrance routes requests to the endpoints by path.
func (s *Server) entrance() http.Handler {
	mux := http.NewServeMux()
	for path, door := range s.config.Doors {
		entered := &threshold{server: s, door: door, name: strings.TrimPrefix(path, "/")}
		mux.Handle(path, entered)
		if door.Below {
			mux.Handle(path+"/", entered)
		}
	}
	return s.parting(mux)
}

// parting asks clients to reconnect once the server is about to stop. It sets "Connection: close"
// in HTTP/1.1, which net/http turns into a GOAWAY in HTTP/2.
func (s *Server) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// threshold wraps an endpoint's handler: it authenticates the client, limits concurrent requests
// and recovers panics.
type threshold struct {
	server *Server
	door   Door
	name   string
}

// ServeHTTP implements http.Handler.
func (t *threshold) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, done := t.server.options.observer.Enter(r, t.name)
	answer := &answer{ResponseWriter: w}
	defer func() { done(answer.status) }()
	defer t.catch(ctx, answer)
	if err := t.door.Callers.admit(r.TLS, time.Now()); err != nil {
		t.server.strangers.Tell(ctx, slog.LevelWarn, "client rejected", slog.String("door", t.name),
			slog.String("caller", r.RemoteAddr), slog.String("error", err.Error()))
		http.Error(answer, err.Error(), http.StatusForbidden)
		return
	}
	place, _, ok := t.server.requests.TryEnter(fair.Claim{Tenant: hostOf(r.RemoteAddr)})
	if !ok {
		http.Error(answer, "too many concurrent requests in total or from this address; retry", http.StatusServiceUnavailable)
		return
	}
	defer place.Leave()
	if ctx != r.Context() {
		r = r.WithContext(ctx)
	}
	t.door.Handler.ServeHTTP(answer, r)
}

// catch answers for a handler that panicked. A response that has already begun is aborted, so that
// the client cannot take a partial response for a complete one.
func (t *threshold) catch(ctx context.Context, w *answer) {
	what := recover()
	if what == nil {
		return
	}
	if what == http.ErrAbortHandler { //nolint:errorlint // a panic's value is compared, as net/http does
		panic(what)
	}
	t.server.options.observer.Panicked(t.name)
	stack := debug.Stack()
	t.server.config.Log.LogAttrs(ctx, slog.LevelError, "internal error: handler panicked", slog.String("door", t.name),
		slog.String("panic", bounded(fmt.Sprint(what), maxLine)), slog.String("stack", string(stack[:min(len(stack), maxStack)])))
	if w.status != 0 {
		panic(http.ErrAbortHandler)
	}
	http.Error(w, "internal error; see the gateway's log", http.StatusInternalServerError)
}

// answer records the status of a response; 0 until the response has begun.
type answer struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap returns the underlying writer to http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// bounded truncates untrusted text and marks the cut.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "… (cut)"
}
