package imagepolicy

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

// Decider evaluates one object. It always returns an outcome, at once when ctx ends.
type Decider interface {
	Decide(ctx context.Context, request gate.Request) gate.Outcome
}

type (
	// Namespaces is that of all endpoints.
	Namespaces = review.Namespaces
	// Failure is that of all endpoints.
	Failure = review.Failure
	// Queue is that of all endpoints.
	Queue = review.Queue
)

// Config holds the required settings of a Handler.
type Config struct {
	Decider    Decider
	Namespaces Namespaces
	Failure    Failure
	Queue      Queue
	Recorder   Recorder
	// Timeout bounds a review; zero means DefaultTimeout, and the limit is MaxTimeout.
	Timeout time.Duration
	// Shadow allows every review, and does not change decisions and records.
	Shadow bool
}

// Handler is the endpoint. It is safe for concurrent use.
type Handler struct {
	config Config
	bodies review.Bodies
}

// New makes a Handler.
func New(config Config) (*Handler, error) {
	if config.Decider == nil || config.Namespaces == nil || config.Failure == nil || config.Queue == nil || config.Recorder == nil {
		return nil, errors.New("imagepolicy: Decider, Namespaces, Failure, Queue and Recorder must not be nil")
	}
	config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	if err := review.CheckTimeout(config.Timeout, MaxTimeout); err != nil {
		return nil, fmt.Errorf("imagepolicy: %w", err)
	}
	return &Handler{config: config, bodies: review.Bodies{Queue: config.Queue, Max: MaxBody, Keep: keptBuffer}}, nil
}

// ServeHTTP handles one review.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := &evaluation{handler: h, started: time.Now()}
	ctx, cancel := context.WithDeadline(r.Context(), e.started.Add(h.config.Timeout))
	defer cancel()
	answer := e.answer(ctx, w, r)
	review.Record(ctx, h.config.Recorder, Review{
		Namespace: e.images.namespace, Images: e.images.names, Allowed: answer.allowed,
		Cause: e.cause, Outcome: e.outcome, Err: e.err, Duration: time.Since(e.started),
	})
	if h.config.Shadow {
		answer = shadowed()
	}
	answer.write(w)
}
