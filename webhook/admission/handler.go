package admission

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

// Door is the kind of a Handler.
type Door string

// The kinds.
const (
	// Mutate applies mutation rules, and evaluates Pods and pins their images.
	Mutate Door = "mutate"
	// Validate evaluates all objects and changes none.
	Validate Door = "validate"
	// Compile rejects broken policies; NewPolicies makes it.
	Compile Door = "policies"
)

// Decider evaluates one object. It always returns an outcome, at once when ctx ends.
type Decider interface {
	Decide(ctx context.Context, request gate.Request) gate.Outcome
}

// Namespaces returns the labels of namespaces. An error means that they could not be read; this
// includes a deleted namespace.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Roles returns the roles that are bound to a user: "namespace:name" and "name".
type Roles interface {
	Roles(ctx context.Context, user policy.User, namespace string) (roles, clusterRoles []string, err error)
}

// Failure returns the policies' failure setting for an undecided subject.
type Failure interface {
	// FailOpen reports whether all policies that may match the subject admit it. The subject has no
	// object, because it may be unreadable.
	FailOpen(subject *policy.Subject) bool
}

// ObjectRules reports which objects rules about objects may match. A subject has no object, because
// it may be unreadable.
type ObjectRules interface {
	// MayMutate and MayValidate report whether a rule may change the object, or deny the operation
	// on it.
	MayMutate(subject *policy.Subject) bool
	MayValidate(subject *policy.Subject) bool
	// MayPin reports whether an image rule pins images in objects of the kind, which is not Pod,
	// because it names the kind itself.
	MayPin(subject *policy.Subject) bool
}

// Config holds the required settings of a Handler.
type Config struct {
	Door       Door
	Decider    Decider
	Namespaces Namespaces
	Failure    Failure
}

// Kind is a kind of objects in a group; "" is the core group.
type Kind struct{ Group, Kind string }

type options struct {
	roles      Roles
	recorder   Recorder
	queue      *Queue
	mutated    map[Kind]bool
	onlyPods   bool
	reproduce  Reproduce
	copies     Copies
	rules      ObjectRules
	requesters Requesters
	trial      Trial
	kinds      Kinds // may be nil
}

// Option changes a default of a Handler.
type Option func(*options) error

// WithRoles enables the lookup of the user's roles, for policies that match on them. By default
// roles are unknown.
func WithRoles(roles Roles) Option {
	return func(o *options) error {
		if roles == nil {
			return errors.New("roles must not be nil")
		}
		o.roles = roles
		return nil
	}
}

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

// WithQueue shares a queue with other endpoints. By default each has its own.
func WithQueue(queue *Queue) Option {
	return func(o *options) error {
		if queue == nil {
			return errors.New("queue must not be nil")
		}
		o.queue = queue
		return nil
	}
}

// WithReproduce adds to the first denied image a command that reproduces the result, with its
// arguments quoted for a shell.
func WithReproduce(command Reproduce) Option {
	return func(o *options) error {
		if command == nil {
			return errors.New("reproduce must not be nil")
		}
		o.reproduce = command
		return nil
	}
}

// WithCopies recognises mirrors' copies of written images. By default there are none.
func WithCopies(copies Copies) Option {
	return func(o *options) error {
		if copies == nil {
			return errors.New("copies must not be nil")
		}
		o.copies = copies
		return nil
	}
}

// WithObjectRules evaluates requests that these rules may match and that contain no image, such as
// deletions, or objects of kinds that the mutating endpoint does not pin. By default such requests
// are admitted at once.
func WithObjectRules(rules ObjectRules) Option {
	return func(o *options) error {
		if rules == nil {
			return errors.New("object rules must not be nil")
		}
		o.rules = rules
		return nil
	}
}

// WithMutateControllers pins images in objects of these kinds as well. Both endpoints require the
// same kinds. By default only Pods are changed.
func WithMutateControllers(kinds ...Kind) Option {
	return func(o *options) error {
		for _, kind := range kinds {
			if kind.Kind == "" {
				return errors.New("mutate controllers: a kind is empty")
			}
			o.mutated[kind] = true
		}
		return nil
	}
}

// WithOnlyPods disables changes of images in objects other than pods. A tag is denied if a rule
// would pin it because it names the kind itself.
func WithOnlyPods() Option {
	return func(o *options) error {
		o.onlyPods = true
		return nil
	}
}

// Handler is one endpoint. It is safe for concurrent use.
type Handler struct {
	config Config
	options
	buffers sync.Pool
}

// New makes an endpoint for objects.
func New(config Config, with ...Option) (*Handler, error) {
	if config.Door != Mutate && config.Door != Validate {
		return nil, fmt.Errorf("admission: endpoint %q: must be %s or %s", config.Door, Mutate, Validate)
	}
	if config.Decider == nil || config.Namespaces == nil || config.Failure == nil {
		return nil, errors.New("admission: a decider, namespaces and a failure setting are required")
	}
	o, err := apply(with)
	if err != nil {
		return nil, err
	}
	return &Handler{config: config, options: o}, nil
}

func apply(with []Option) (options, error) {
	o := options{recorder: unrecorded{}, mutated: map[Kind]bool{{Kind: "Pod"}: true}}
	for _, option := range with {
		if err := option(&o); err != nil {
			return o, fmt.Errorf("admission: %w", err)
		}
	}
	if o.queue != nil {
		return o, nil
	}
	var err error
	o.queue, err = NewQueue(QueueBounds{})
	return o, err
}

// ServeHTTP handles one review. A panic is handled as a missing decision.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{door: h.config.Door, options: &h.options, buffers: &h.buffers, started: time.Now(), judge: h}
	x.serve(w, r)
}

// undecided answers a request without a decision, according to the policies' failure setting.
func (h *Handler) undecided(q *question, cause Cause) response {
	why := sentences[cause]
	switch {
	case q.mirror:
		return response{allowed: true}
	case q.leaving:
		return response{allowed: true, warnings: []string{warning(wordUnable + ": " + why + "; admitted because it is being deleted")}}
	case cause.isSilence() && !q.busy && h.failsOpen(&q.subject):
		return response{allowed: true, warnings: []string{warning(wordUnable + ": " + why + "; admitted because of failurePolicy Ignore")}}
	}
	return denied(q.title() + ": " + wordUnable + "\n  why: " + why + "\n  next: retry; if it persists, contact the gateway's administrator")
}

// sentences explain a missing decision to a person.
var sentences = map[Cause]string{
	QueueFull:  "the gateway has reached its limit of concurrent requests",
	ShareTaken: "the namespace has reached its share of the gateway's concurrent requests",
	TimedOut:   "the evaluation timed out",
	Panicked:   "internal error; see the gateway's log",
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
