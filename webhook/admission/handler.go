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

// Door says what a Handler does.
type Door string

// The doors.
const (
	// Mutate changes objects as rules say, decides about Pods and pins their images.
	Mutate Door = "mutate"
	// Validate decides about everything and changes nothing.
	Validate Door = "validate"
	// Compile refuses policies that are broken; NewPolicies makes it.
	Compile Door = "policies"
)

// Decider judges one object. It always answers, at once when ctx ends.
type Decider interface {
	Decide(ctx context.Context, request gate.Request) gate.Outcome
}

// Namespaces knows the labels of namespaces. An error means that they could not
// be read, also of a namespace that is gone.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Roles knows which roles are bound to a user: "namespace:name" and "name".
type Roles interface {
	Roles(ctx context.Context, user policy.User, namespace string) (roles, clusterRoles []string, err error)
}

// Failure says what the policies want for a subject that could not be decided.
type Failure interface {
	// FailOpen reports whether all policies that may speak of the subject admit
	// it. The subject has no object: it may not have been read.
	FailOpen(subject *policy.Subject) bool
}

// ObjectRules knows of which objects rules about objects may speak. A subject has no
// object: it may not have been read.
type ObjectRules interface {
	// MayMutate and MayValidate report whether one may change the object, or forbid what
	// is done to it.
	MayMutate(subject *policy.Subject) bool
	MayValidate(subject *policy.Subject) bool
	// MayPin reports whether a rule about images pins them in objects of the kind, which
	// is no pod, because it names the kind itself.
	MayPin(subject *policy.Subject) bool
}

// Config is what a Handler cannot do without.
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

// WithRoles looks up the roles of who asks, for policies that speak of them;
// nobody does unless set.
func WithRoles(roles Roles) Option {
	return func(o *options) error {
		if roles == nil {
			return errors.New("roles: want somebody who knows them")
		}
		o.roles = roles
		return nil
	}
}

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

// WithQueue shares a queue with other doors; each has its own unless set.
func WithQueue(queue *Queue) Option {
	return func(o *options) error {
		if queue == nil {
			return errors.New("queue: want one")
		}
		o.queue = queue
		return nil
	}
}

// WithReproduce adds to the first refused image one command that shows why, with
// its arguments quoted for a shell.
func WithReproduce(command Reproduce) Option {
	return func(o *options) error {
		if command == nil {
			return errors.New("reproduce: want a command")
		}
		o.reproduce = command
		return nil
	}
}

// WithCopies says which images are mirrors' copies of what was written; none is
// unless set.
func WithCopies(copies Copies) Option {
	return func(o *options) error {
		if copies == nil {
			return errors.New("copies: want somebody who knows the mirrors")
		}
		o.copies = copies
		return nil
	}
}

// WithObjectRules asks about what brings no image, as a deletion, and about kinds that
// are not pinned at the mutating door, where these rules may speak of it; unless set,
// such requests are admitted at once.
func WithObjectRules(rules ObjectRules) Option {
	return func(o *options) error {
		if rules == nil {
			return errors.New("object rules: want somebody who knows them")
		}
		o.rules = rules
		return nil
	}
}

// WithMutateControllers pins images in objects of these kinds as well, at both
// doors alike; unless set, only Pods are changed.
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

// WithOnlyPods changes no image in objects other than pods: a tag that a rule which names
// their kind itself would pin is denied.
func WithOnlyPods() Option {
	return func(o *options) error {
		o.onlyPods = true
		return nil
	}
}

// Handler is one door. It is safe for concurrent use.
type Handler struct {
	config Config
	options
	buffers sync.Pool
}

// New makes a door for objects.
func New(config Config, with ...Option) (*Handler, error) {
	if config.Door != Mutate && config.Door != Validate {
		return nil, fmt.Errorf("admission: door %q: want %s or %s", config.Door, Mutate, Validate)
	}
	if config.Decider == nil || config.Namespaces == nil || config.Failure == nil {
		return nil, errors.New("admission: want a decider, namespaces and a failure setting")
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

// ServeHTTP answers one review. A panic becomes the answer that the policies want
// for what could not be decided.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{door: h.config.Door, options: &h.options, buffers: &h.buffers, started: time.Now(), judge: h}
	deepen(0)
	x.serve(w, r)
}

// undecided answers what could not be decided, as the policies want it.
func (h *Handler) undecided(q *question, cause Cause) response {
	why := sentences[cause]
	switch {
	case q.mirror:
		return response{allowed: true}
	case q.leaving:
		return response{allowed: true, warnings: []string{warning(wordUnable + ": " + why + "; admitted, since it is being deleted")}}
	case cause.isSilence() && !q.busy && h.failsOpen(&q.subject):
		return response{allowed: true, warnings: []string{warning(wordUnable + ": " + why + "; admitted, as failurePolicy Ignore says")}}
	}
	return denied(q.title() + ": " + wordUnable + "\n  why: " + why + "\n  next: try again; if it stays so, ask who runs the gateway")
}

// sentences say to a person why there is no decision.
var sentences = map[Cause]string{
	QueueFull:  "the gateway is at work on as many requests as it may",
	ShareTaken: "the gateway is at work on as many requests of this namespace as leaves room for those of others",
	TimedOut:   "the time for an answer ran out",
	Panicked:   "an internal error, which is a defect; the gateway's log has it",
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
