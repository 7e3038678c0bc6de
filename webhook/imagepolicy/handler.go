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

// Decider judges one object. It always answers, at once when ctx ends.
type Decider interface {
	Decide(ctx context.Context, request gate.Request) gate.Outcome
}

// Namespaces knows the labels of namespaces. An error means that they could not
// be read.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Failure says what the policies want for a subject that could not be decided.
type Failure interface {
	// FailOpen reports whether all policies that may speak of the subject admit
	// it. The subject has no object: the review may not have been read.
	FailOpen(subject *policy.Subject) bool
}

// Queue bounds the work of the doors that share it. Who gets something calls what
// is returned with it, once.
type Queue interface {
	// Reserve waits for memory for a body of so many bytes until ctx ends, in the name
	// of the address that it comes from.
	Reserve(ctx context.Context, from string, size int64) (release func(), err error)
	// Enter waits for a turn for a namespace, "" for none, until ctx ends.
	Enter(ctx context.Context, namespace string) (leave func(), err error)
}

// Config is what a Handler cannot do without.
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

// WithRecorder tells of each answer.
func WithRecorder(recorder Recorder) Option {
	return func(o *options) error {
		if recorder == nil {
			return errors.New("recorder: want one")
		}
		o.recorder = recorder
		return nil
	}
}

// WithTimeout changes what a review may take; DefaultTimeout unless set, and at
// most MaxTimeout.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) error {
		if timeout <= 0 || timeout > MaxTimeout {
			return fmt.Errorf("timeout %s: want more than nothing and at most %s", timeout, MaxTimeout)
		}
		o.timeout = timeout
		return nil
	}
}

// WithShadow decides and tells the recorder as without it, and allows whatever comes.
func WithShadow() Option {
	return func(o *options) error {
		o.shadow = true
		return nil
	}
}

// Handler is the door. It is safe for concurrent use.
type Handler struct {
	config Config
	options
	buffers sync.Pool
}

// New makes a Handler.
func New(config Config, with ...Option) (*Handler, error) {
	if config.Decider == nil || config.Namespaces == nil || config.Failure == nil || config.Queue == nil {
		return nil, errors.New("imagepolicy: want a decider, namespaces, a failure setting and a queue")
	}
	h := &Handler{config: config, options: options{recorder: unrecorded{}, timeout: DefaultTimeout}}
	for _, option := range with {
		if err := option(&h.options); err != nil {
			return nil, fmt.Errorf("imagepolicy: %w", err)
		}
	}
	return h, nil
}

// ServeHTTP answers one review.
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

// failsOpen asks for the failure setting; who cannot answer says no.
func (h *Handler) failsOpen(subject *policy.Subject) (open bool) {
	defer func() {
		if recover() != nil {
			open = false
		}
	}()
	return h.config.Failure.FailOpen(subject)
}
