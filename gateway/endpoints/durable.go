package endpoints

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
)

// flusher is the part of the decision log that endpoints need.
type flusher interface {
	Mark() journal.Mark
	Flush(ctx context.Context, since journal.Mark) error
}

// Durable delays a response until its decisions are on disk.
type Durable struct {
	Handler   http.Handler
	Decisions flusher
	Wait      time.Duration
	Deny      bool
	Log       *slog.Logger
}

// ServeHTTP implements http.Handler. An endpoint records its decisions before it responds, so all
// of them are recorded when it returns.
func (d *Durable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	since := d.Decisions.Mark()
	held := &pendingResponse{beneath: w, header: http.Header{}, status: http.StatusOK}
	d.Handler.ServeHTTP(held, r)
	ctx, cancel := context.WithTimeout(r.Context(), d.Wait)
	defer cancel()
	if err := d.Decisions.Flush(ctx, since); err != nil {
		d.Log.Error("a decision is not known to be on disk", slog.Bool("answered", !d.Deny), slog.String("error", err.Error()))
		if d.Deny {
			// A client reuses its connection, and so this replica; a new connection may lead to a
			// replica with free disk space.
			w.Header().Set("Connection", "close")
			http.Error(w, "the decision could not be written to the decision log (decisionLog.onFailure: deny)", http.StatusServiceUnavailable)
			return
		}
	}
	held.send()
}

// pendingResponse is a response that is not sent yet. Responses of endpoints are small.
type pendingResponse struct {
	beneath http.ResponseWriter
	header  http.Header
	status  int
	body    bytes.Buffer
	begun   bool
}

// Header implements http.ResponseWriter.
func (h *pendingResponse) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *pendingResponse) WriteHeader(status int) {
	if !h.begun {
		h.status, h.begun = status, true
	}
}

// Write implements http.ResponseWriter.
func (h *pendingResponse) Write(text []byte) (int, error) {
	h.begun = true
	return h.body.Write(text)
}

// Unwrap gives http.ResponseController access to the underlying writer.
func (h *pendingResponse) Unwrap() http.ResponseWriter { return h.beneath }

func (h *pendingResponse) send() {
	to := h.beneath.Header()
	for name, values := range h.header {
		to[name] = values
	}
	h.beneath.WriteHeader(h.status)
	_, _ = h.beneath.Write(h.body.Bytes()) // client disconnected
}
