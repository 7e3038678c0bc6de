package gateway

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog/journal"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// durable makes a door, or the socket, answer when its decisions are on disk, where that is configured.
// Doors that decide nothing stay as they are.
func (g *gateway) durable(path string, door http.Handler) http.Handler {
	c := g.configuration.DecisionLog
	if g.decisions == nil || !c.waits() || path == peers.Path || path == peers.ViewPath || path == configuration.DocumentsPath || g.configuration.shadows(path) {
		return door
	}
	return &durable{door: door, log: g.decisions, wait: time.Duration(c.FlushTimeout), deny: c.OnFailure == onFailureDeny, trouble: g.log}
}

// flusher is what the doors ask of the decision log.
type flusher interface {
	Mark() journal.Mark
	Flush(ctx context.Context, since journal.Mark) error
}

// durable holds an answer back until it is on disk what was decided.
type durable struct {
	door    http.Handler
	log     flusher
	wait    time.Duration
	deny    bool
	trouble *slog.Logger
}

// ServeHTTP implements http.Handler. A door records its decisions before it answers, so
// that they were all taken when it returns.
func (d *durable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	since := d.log.Mark()
	held := &heldAnswer{beneath: w, header: http.Header{}, status: http.StatusOK}
	d.door.ServeHTTP(held, r)
	ctx, cancel := context.WithTimeout(r.Context(), d.wait)
	defer cancel()
	if err := d.log.Flush(ctx, since); err != nil {
		d.trouble.Error("a decision is not known to be on disk", slog.Bool("answered", !d.deny), slog.String("error", err.Error()))
		if d.deny {
			// Who asks keeps to one connection, and so to this replica; by another it may
			// come to one whose disk has room.
			w.Header().Set("Connection", "close")
			http.Error(w, "the decision could not be written to the decision log (decisionLog.onFailure: deny)", http.StatusServiceUnavailable)
			return
		}
	}
	held.send()
}

// heldAnswer is an answer that is not sent yet. Answers of doors are small.
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

// Unwrap lets http.ResponseController reach what is beneath.
func (h *heldAnswer) Unwrap() http.ResponseWriter { return h.beneath }

func (h *heldAnswer) send() {
	to := h.beneath.Header()
	for name, values := range h.header {
		to[name] = values
	}
	h.beneath.WriteHeader(h.status)
	_, _ = h.beneath.Write(h.body.Bytes()) // who asked may be gone
}
