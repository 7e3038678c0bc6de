package externaldata

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Door is the kind of a Handler.
type Door string

// The kinds.
const (
	// Verify returns the exact name of an image that may run. If no policy requires its digest, it
	// returns the name in the request.
	Verify Door = "externaldata/verify"
	// Mutate returns the name to write into the object: pinned if a policy requires it, of a mirror
	// if one serves it, else unchanged.
	Mutate Door = "externaldata/mutate"
)

// Decider evaluates objects together, against one snapshot. It always returns the outcomes in the
// order of the requests, at once when ctx ends.
type Decider interface {
	DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome
}

// Namespaces returns the labels of namespaces. An error means that they could not be read.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
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
	Door       Door
	Decider    Decider
	Namespaces Namespaces
	Queue      Queue
}

type options struct {
	recorder Recorder
	timeout  time.Duration
	keys     Keys
	pinning  gate.Pinning
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

// WithTimeout sets the timeout of a request: DefaultVerifyTimeout or DefaultMutateTimeout unless
// set, and at most MaxTimeout. It should be less than the timeouts of the provider and of
// Gatekeeper's webhook.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) error {
		if timeout <= 0 || timeout > MaxTimeout {
			return fmt.Errorf("timeout %s: must be positive and at most %s", timeout, MaxTimeout)
		}
		o.timeout = timeout
		return nil
	}
}

// WithKeys sets the keys that a Verify endpoint accepts; Either unless set.
func WithKeys(keys Keys) Option {
	return func(o *options) error {
		if keys != Either && keys != Qualified && keys != Plain {
			return fmt.Errorf("keys %q: must be %s, %s or empty", keys, Qualified, Plain)
		}
		o.keys = keys
		return nil
	}
}

// WithDigests makes a Verify endpoint deny a tag if a policy pins and verifies digests. Unless set,
// the response for a tag with a verified digest is the exact name. A template that ignores
// it lets the runtime resolve the tag again.
func WithDigests() Option {
	return func(o *options) error {
		o.pinning = gate.PinNever
		return nil
	}
}

// WithShadow does not change decisions and records, but the response for each key is its image,
// unchanged and without an error. There is never a system error.
func WithShadow() Option {
	return func(o *options) error {
		o.shadow = true
		return nil
	}
}

// Handler is one endpoint. It is safe for concurrent use.
type Handler struct {
	config Config
	options
	buffers sync.Pool
}

// New makes a Handler.
func New(config Config, with ...Option) (*Handler, error) {
	if config.Door != Verify && config.Door != Mutate {
		return nil, fmt.Errorf("externaldata: endpoint %q: must be %s or %s", config.Door, Verify, Mutate)
	}
	if config.Decider == nil || config.Namespaces == nil || config.Queue == nil {
		return nil, errors.New("externaldata: a decider, namespaces and a queue are required")
	}
	o := options{recorder: unrecorded{}, timeout: DefaultVerifyTimeout, pinning: gate.PinLater}
	if config.Door == Mutate {
		o.timeout, o.pinning = DefaultMutateTimeout, gate.PinHere
	}
	pinning := o.pinning
	for _, option := range with {
		if err := option(&o); err != nil {
			return nil, fmt.Errorf("externaldata: %w", err)
		}
	}
	if config.Door == Mutate {
		if o.keys != Either && o.keys != Plain || o.pinning != pinning {
			return nil, errors.New("externaldata: keys with namespaces, and the denial of tags, require the endpoint that verifies")
		}
		o.keys = Plain
	}
	return &Handler{config: config, options: o}, nil
}

// ServeHTTP handles one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{handler: h, started: time.Now()}
	ctx, cancel := context.WithDeadline(r.Context(), x.started.Add(h.timeout))
	defer cancel()
	items, systemError := x.answer(ctx, w, r)
	x.record(ctx)
	if h.shadow {
		items, systemError = h.shadowed(items), ""
	}
	write(w, items, systemError)
}
