package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// Endpoint is the kind of a Handler.
type Endpoint string

// The kinds.
const (
	// Mutate applies mutation rules, and evaluates Pods and pins their images.
	Mutate Endpoint = "mutate"
	// Validate evaluates all objects and changes none.
	Validate Endpoint = "validate"
	// Policies rejects broken policies; NewPolicies makes it.
	Policies Endpoint = "policies"
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
)

// Roles returns the roles that are bound to a user: "namespace:name" and "name".
type Roles interface {
	Roles(ctx context.Context, user policy.User, namespace string) (roles, clusterRoles []string, err error)
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

// Kind is a kind of objects in a group; "" is the core group.
type Kind struct{ Group, Kind string }

// Config holds the settings of a Handler.
type Config struct {
	Endpoint   Endpoint
	Decider    Decider
	Namespaces Namespaces
	Failure    Failure
	// Queue may be shared with other endpoints.
	Queue    *Queue
	Recorder Recorder

	// Roles serves policies that match on the user's roles; nil: roles are unknown.
	Roles Roles
	// Copies recognises mirrors' copies of written images; nil: there are none.
	Copies Copies
	// Rules select requests that contain no image, such as deletions, and objects of kinds that the
	// mutating endpoint does not pin. Without it such requests are admitted at once.
	Rules ObjectRules
	// Requesters makes the mutating endpoint record the creator in objects; nil: it does not.
	Requesters Requesters
	// Reproduce adds to the first denied image a command that reproduces the result, with its
	// arguments quoted for a shell; nil: none.
	Reproduce Reproduce
	// Kinds matches a request for the subresource of a custom resource by the kind of that
	// resource. Without it, and for an unknown resource, the resource in the request counts.
	Kinds Kinds
	// Controllers are kinds in which images are pinned in addition to Pods. Both endpoints require
	// the same kinds.
	Controllers []Kind
	// OnlyPods disables changes of images in objects other than pods. A tag is denied if a rule
	// would pin it because it names the kind itself.
	OnlyPods bool
	// KyvernoDenials adds the lines of Kyverno's denials, for scripts that search for them.
	KyvernoDenials bool
}

func (c *Config) check() error {
	switch {
	case c.Endpoint != Mutate && c.Endpoint != Validate:
		return fmt.Errorf("endpoint %q: must be %s or %s", c.Endpoint, Mutate, Validate)
	case c.Decider == nil || c.Namespaces == nil || c.Failure == nil || c.Queue == nil || c.Recorder == nil:
		return errors.New("Decider, Namespaces, Failure, Queue and Recorder must not be nil")
	case slices.ContainsFunc(c.Controllers, func(k Kind) bool { return k.Kind == "" }):
		return errors.New("controllers: a kind is empty")
	}
	return nil
}

// Handler is one endpoint. It is safe for concurrent use.
type Handler struct {
	config  Config
	mutated map[Kind]bool
	server  server
}

// New makes an endpoint for objects.
func New(config Config) (*Handler, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	h := &Handler{
		config: config, mutated: map[Kind]bool{{Kind: "Pod"}: true},
		server: newServer(config.Endpoint, config.Queue, config.Recorder, config.Kinds),
	}
	for _, kind := range config.Controllers {
		h.mutated[kind] = true
	}
	return h, nil
}

// ServeHTTP handles one review. A panic is handled as a missing decision.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &call{server: &h.server, reviewer: h}
	x.serve(w, r)
}

// undecided answers a request without a decision, according to the policies' failure setting.
func (h *Handler) undecided(q *pending, cause Cause) response {
	why := cause.Sentence()
	switch {
	case q.mirror:
		return response{allowed: true}
	case q.leaving:
		return response{allowed: true, warnings: []string{warning(review.Unverified + ": " + why + "; admitted because it is being deleted")}}
	case cause.Admits(h.config.Failure, &q.subject, q.busy):
		return response{allowed: true, warnings: []string{warning(review.Unverified + ": " + why + "; admitted because of failurePolicy Ignore")}}
	}
	return denied(q.title() + ": " + review.Unverified + "\n  why: " + why + "\n  " + review.Next)
}
