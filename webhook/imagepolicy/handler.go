package imagepolicy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// Decider evaluates one object. It always returns an outcome, at once when ctx ends.
type Decider interface {
	Decide(ctx context.Context, request gate.Request) gate.Outcome
}

// Namespaces returns the labels of namespaces. An error means that they could not be read.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Failure returns the policies' failure setting for an undecided subject.
type Failure interface {
	// FailOpen reports whether all policies that may match the subject admit it. The subject has no
	// object, because the review may be unreadable.
	FailOpen(subject *policy.Subject) bool
}

// Queue limits the work of the endpoints that share it. The caller must call the returned function
// once.
type Queue interface {
	// Reserve waits until ctx ends for memory for a body of this size. The memory is accounted to
	// the client's address.
	Reserve(ctx context.Context, from string, size int64) (release func(), err error)
	// Enter waits until ctx ends for a slot for a namespace, "" for none.
	Enter(ctx context.Context, namespace string) (leave func(), err error)
}

// Config holds the required settings of a Handler.
type Config struct {
	Decider    Decider
	Namespaces Namespaces
	Failure    Failure
	Queue      Queue
}

type options struct {
	recorder Recorder
	timeout  time.Duration
	shadow   bool
}

// Option changes a default of a Handler.
type Option func(*options) error

// WithRecorder sets the recorder of results.
func WithRecorder(recorder Recorder) Option {
	return func(o *options) error {
		if recorder == nil {
			return errors.New("recorder must not be nil")
		}
		o.recorder = recorder
		return nil
	}
}

// WithTimeout sets the timeout of a review; DefaultTimeout unless set, and at most MaxTimeout.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) error {
		if timeout <= 0 || timeout > MaxTimeout {
			return fmt.Errorf("timeout %s: must be positive and at most %s", timeout, MaxTimeout)
		}
		o.timeout = timeout
		return nil
	}
}

// WithShadow does not change decisions and records, but allows every review.
func WithShadow() Option {
	return func(o *options) error {
		o.shadow = true
		return nil
	}
}

// Handler is the endpoint. It is safe for concurrent use.
type Handler struct {
	config Config
	options
	buffers sync.Pool
}

// New makes a Handler.
func New(config Config, with ...Option) (*Handler, error) {
	if config.Decider == nil || config.Namespaces == nil || config.Failure == nil || config.Queue == nil {
		return nil, errors.New("imagepolicy: a decider, namespaces, a failure setting and a queue are required")
	}
	h := &Handler{config: config, options: options{recorder: unrecorded{}, timeout: DefaultTimeout}}
	for _, option := range with {
		if err := option(&h.options); err != nil {
			return nil, fmt.Errorf("imagepolicy: %w", err)
		}
	}
	return h, nil
}

// ServeHTTP handles one review.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{handler: h, started: time.Now()}
	ctx, cancel := context.WithDeadline(r.Context(), x.started.Add(h.timeout))
	defer cancel()
	answer := x.answer(ctx, w, r)
	x.record(ctx, answer.allowed)
	if h.shadow {
		answer = shadowed()
	}
	answer.write(w)
}

// failsOpen returns the failure setting; false if it panics.
func (h *Handler) failsOpen(subject *policy.Subject) (open bool) {
	defer func() {
		if recover() != nil {
			open = false
		}
	}()
	return h.config.Failure.FailOpen(subject)
}
