package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// durable makes an endpoint, or the socket, respond only after its decisions are on disk, if that
// is configured. Endpoints without decisions stay unchanged.
func (g *assembly) durable(path string, door http.Handler) http.Handler {
	c := g.configuration.DecisionLog
	if g.decisions == nil || !c.Waits() || path == peers.Path || path == peers.ViewPath || path == configuration.DocumentsPath || g.configuration.Shadows(path) {
		return door
	}
	return &durable{door: door, log: g.decisions, wait: time.Duration(c.FlushTimeout), deny: c.OnFailure == config.OnFailureDeny, trouble: g.log}
}

// flusher is the part of the decision log that endpoints need.
type flusher interface {
	Mark() journal.Mark
	Flush(ctx context.Context, since journal.Mark) error
}

// durable delays a response until its decisions are on disk.
type durable struct {
	door    http.Handler
	log     flusher
	wait    time.Duration
	deny    bool
	trouble *slog.Logger
}

// ServeHTTP implements http.Handler. An endpoint records its decisions before it responds, so all
// of them are recorded when it returns.
func (d *durable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	since := d.log.Mark()
	held := &heldAnswer{beneath: w, header: http.Header{}, status: http.StatusOK}
	d.door.ServeHTTP(held, r)
	ctx, cancel := context.WithTimeout(r.Context(), d.wait)
	defer cancel()
	if err := d.log.Flush(ctx, since); err != nil {
		d.trouble.Error("a decision is not known to be on disk", slog.Bool("answered", !d.deny), slog.String("error", err.Error()))
		if d.deny {
			// A client reuses its connection, and so this replica; a new connection may lead to a
			// replica with free disk space.
			w.Header().Set("Connection", "close")
			http.Error(w, "the decision could not be written to the decision log (decisionLog.onFailure: deny)", http.StatusServiceUnavailable)
			return
		}
	}
	held.send()
}

// heldAnswer is a response that is not sent yet. Responses of endpoints are small.
type heldAnswer struct {
	beneath http.ResponseWriter
	header  http.Header
	status  int
	body    bytes.Buffer
	begun   bool
}

// Header implements http.ResponseWriter.
func (h *heldAnswer) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter.
func (h *heldAnswer) WriteHeader(status int) {
	if !h.begun {
		h.status, h.begun = status, true
	}
}

// Write implements http.ResponseWriter.
func (h *heldAnswer) Write(text []byte) (int, error) {
	h.begun = true
	return h.body.Write(text)
}

// Unwrap gives http.ResponseController access to the underlying writer.
func (h *heldAnswer) Unwrap() http.ResponseWriter { return h.beneath }

func (h *heldAnswer) send() {
	to := h.beneath.Header()
	for name, values := range h.header {
		to[name] = values
	}
	h.beneath.WriteHeader(h.status)
	_, _ = h.beneath.Write(h.body.Bytes()) // client disconnected
}
