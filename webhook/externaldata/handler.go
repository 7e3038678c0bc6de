package externaldata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// Endpoint is the kind of a Handler.
type Endpoint string

// The kinds.
const (
	// Verify returns the exact name of an image that may run. If no policy requires its digest, it
	// returns the name in the request.
	Verify Endpoint = "externaldata/verify"
	// Mutate returns the name to write into the object: pinned if a policy requires it, of a mirror
	// if one serves it, else unchanged.
	Mutate Endpoint = "externaldata/mutate"
)

// Decider evaluates objects together, against one snapshot. It always returns the outcomes in the
// order of the requests, at once when ctx ends.
type Decider interface {
	DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome
}

type (
	// Namespaces is that of all endpoints.
	Namespaces = review.Namespaces
	// Queue is that of all endpoints.
	Queue = review.Queue
)

// Config holds the required settings of a Handler.
type Config struct {
	Endpoint   Endpoint
	Decider    Decider
	Namespaces Namespaces
	Queue      Queue
	Recorder   Recorder
	// Timeout bounds a request; zero means DefaultVerifyTimeout or DefaultMutateTimeout, and the
	// limit is MaxTimeout. It should be less than the timeouts of the provider and of Gatekeeper's
	// webhook.
	Timeout time.Duration
	// Keys are the keys that a Verify endpoint accepts.
	Keys Keys
	// Digests makes a Verify endpoint deny a tag if a policy pins and verifies digests. Otherwise
	// the response for a tag with a verified digest is the exact name; a template that ignores it
	// lets the runtime resolve the tag again.
	Digests bool
	// Shadow does not change decisions and records, but the response for each key is its image,
	// unchanged and without an error. There is never a system error.
	Shadow bool
}

// check rejects invalid settings and sets defaults.
func (c *Config) check() error {
	if c.Decider == nil || c.Namespaces == nil || c.Queue == nil || c.Recorder == nil {
		return errors.New("Decider, Namespaces, Queue and Recorder must not be nil")
	}
	if c.Keys != Either && c.Keys != Qualified && c.Keys != Plain {
		return fmt.Errorf("keys %q: must be %s, %s or empty", c.Keys, Qualified, Plain)
	}
	switch c.Endpoint {
	case Verify:
		c.Timeout = cmp.Or(c.Timeout, DefaultVerifyTimeout)
	case Mutate:
		if c.Keys == Qualified || c.Digests {
			return errors.New("keys with namespaces, and the denial of tags, require the endpoint that verifies")
		}
		c.Keys, c.Timeout = Plain, cmp.Or(c.Timeout, DefaultMutateTimeout)
	default:
		return fmt.Errorf("endpoint %q: must be %s or %s", c.Endpoint, Verify, Mutate)
	}
	return review.CheckTimeout(c.Timeout, MaxTimeout)
}

// pinning returns which component replaces tags.
func (c *Config) pinning() gate.Pinning {
	switch {
	case c.Endpoint == Mutate:
		return gate.PinHere
	case c.Digests:
		return gate.PinNever
	}
	return gate.PinLater
}

// Handler is one endpoint. It is safe for concurrent use.
type Handler struct {
	config Config
	bodies review.Bodies
}

// New makes a Handler.
func New(config Config) (*Handler, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("externaldata: %w", err)
	}
	return &Handler{config: config, bodies: review.Bodies{Queue: config.Queue, Max: MaxBody, Keep: keptBuffer}}, nil
}

// ServeHTTP handles one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	started := time.Now()
	ctx, cancel := context.WithDeadline(r.Context(), started.Add(h.config.Timeout))
	defer cancel()
	batch, items, systemError := h.answer(ctx, w, r)
	batch.Endpoint, batch.Duration = h.config.Endpoint, time.Since(started)
	review.Record(ctx, h.config.Recorder, batch)
	if h.config.Shadow {
		items, systemError = h.shadowed(items), ""
	}
	write(w, items, systemError)
}
