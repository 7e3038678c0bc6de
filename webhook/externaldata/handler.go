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

// Door says what a Handler does.
type Door string

// The doors.
const (
	// Verify answers with the exact name of an image that may run, or, where no
	// policy wants its digest, with the name as it was asked.
	Verify Door = "externaldata/verify"
	// Mutate answers with the name to write in the object: pinned where a policy
	// wants it, inside a mirror where one serves it, else as it was.
	Mutate Door = "externaldata/mutate"
)

// Decider judges objects together, by one snapshot. It always answers, at once
// when ctx ends, in the order of the requests.
type Decider interface {
	DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome
}

// Namespaces knows the labels of namespaces. An error means that they could not
// be read.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
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

// WithTimeout changes what a request may take: DefaultVerifyTimeout or
// DefaultMutateTimeout unless set, and at most MaxTimeout. It should be less than
// the provider's timeout, and than that of Gatekeeper's webhook.
func WithTimeout(timeout time.Duration) Option {
	return func(o *options) error {
		if timeout <= 0 || timeout > MaxTimeout {
			return fmt.Errorf("timeout %s: want more than nothing and at most %s", timeout, MaxTimeout)
		}
		o.timeout = timeout
		return nil
	}
}

// WithKeys says which keys a Verify door takes; Either unless set.
func WithKeys(keys Keys) Option {
	return func(o *options) error {
		if keys != Either && keys != Qualified && keys != Plain {
			return fmt.Errorf("keys %q: want %s, %s or nothing", keys, Qualified, Plain)
		}
		o.keys = keys
		return nil
	}
}

// WithDigests has a Verify door refuse a tag where a policy pins and verifies
// digests. Unless set, a tag whose digest was proved is answered by its exact name,
// and a template that lets the tag stand lets the runtime resolve it anew.
func WithDigests() Option {
	return func(o *options) error {
		o.pinning = gate.PinNever
		return nil
	}
}

// WithShadow decides and tells the recorder as without it, and answers each key with the
// image that it names, unchanged: without an error, and without a system error, whatever
// comes.
func WithShadow() Option {
	return func(o *options) error {
		o.shadow = true
		return nil
	}
}

// Handler is one door. It is safe for concurrent use.
type Handler struct {
	config Config
	options
	buffers sync.Pool
}

// New makes a Handler.
func New(config Config, with ...Option) (*Handler, error) {
	if config.Door != Verify && config.Door != Mutate {
		return nil, fmt.Errorf("externaldata: door %q: want %s or %s", config.Door, Verify, Mutate)
	}
	if config.Decider == nil || config.Namespaces == nil || config.Queue == nil {
		return nil, errors.New("externaldata: want a decider, namespaces and a queue")
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
			return nil, errors.New("externaldata: keys with namespaces, and the refusal of tags, are for the door that verifies")
		}
		o.keys = Plain
	}
	return &Handler{config: config, options: o}, nil
}

// ServeHTTP answers one request.
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
