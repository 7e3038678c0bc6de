package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// Authenticator resolves a token to a user. A user without a name and without an error means that
// the token is not valid. An error means that the token could not be verified.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (policy.User, error)
}

// Decider evaluates objects against one snapshot. The outcomes are in the order of the requests. It
// always returns them, at once when ctx ends.
type Decider interface {
	DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome
}

// Namespaces is that of all endpoints.
type Namespaces = review.Namespaces

// ModeHeader is set to "shadow" in each response if Config.Shadow is set.
const ModeHeader = "Quaymaster-Mode"

// Config holds the settings of a Handler.
type Config struct {
	// Authenticator is nil only if User is set.
	Authenticator Authenticator
	// User is the user of every caller. No token is then required, so the listener must restrict
	// access itself, such as a socket with file permissions.
	User       string
	Decider    Decider
	Namespaces Namespaces
	Recorder   Recorder
	// Timeout bounds a request as a whole; zero means DefaultTimeout, and the limit is MaxTimeout.
	Timeout time.Duration
	Limits  Limits
	// Callers restricts the endpoint. Nil means all authenticated users, which is too permissive for
	// an Authenticator that accepts all users of a cluster.
	Callers *Callers
	// Shadow reports in ModeHeader that nothing is enforced. The verdicts do not change; a client
	// that enforces them must read the header.
	Shadow bool
}

// Callers are users, and members of groups, by name.
type Callers struct{ Users, Groups []string }

// Limits bound concurrent requests. Zero fields keep their defaults.
type Limits struct {
	// Requests is the limit of all callers together: 32. Further requests wait for at most 2 s.
	Requests int
	// PerCaller is the limit of one user: 8. Further requests are rejected at once.
	PerCaller int
}

// check rejects invalid settings and sets defaults.
func (c *Config) check() error {
	if c.Decider == nil || c.Namespaces == nil || c.Recorder == nil {
		return errors.New("Decider, Namespaces and Recorder must not be nil")
	}
	if (c.Authenticator == nil) == (c.User == "") {
		return errors.New("either Authenticator or User is required")
	}
	if c.Limits.Requests < 0 || c.Limits.PerCaller < 0 {
		return errors.New("limits must not be negative")
	}
	if c.Callers != nil && (len(c.Callers.Users)+len(c.Callers.Groups) == 0 || slices.Contains(c.Callers.Users, "") || slices.Contains(c.Callers.Groups, "")) {
		return errors.New("callers: names of users or groups are required")
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	return review.CheckTimeout(c.Timeout, MaxTimeout)
}

// Handler is the endpoint. It is safe for concurrent use.
type Handler struct {
	config Config
	queue  *queue
	bodies review.Bodies
}

// New makes a Handler.
func New(config Config) (*Handler, error) {
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return &Handler{config: config, queue: newQueue(config.Limits), bodies: review.Bodies{Max: MaxBody}}, nil
}

// ServeHTTP handles one request. It recovers panics and records them.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, started := &pending{handler: h}, time.Now()
	ctx, cancel := context.WithDeadline(r.Context(), started.Add(h.config.Timeout))
	defer cancel()
	if h.config.Shadow {
		w.Header().Set(ModeHeader, "shadow")
	}
	body, err := p.answerSafely(ctx, w, r)
	p.call.Cause, p.call.Err = causeOf(err), errors.Join(p.call.Err, err)
	p.call.Duration = time.Since(started)
	review.Record(ctx, h.config.Recorder, p.call)
	if err != nil {
		refuse(w, err)
		return
	}
	write(w, http.StatusOK, body)
}

// pending is one request and its result.
type pending struct {
	handler *Handler
	call    Call
}

// answerSafely turns a panic into an error.
func (p *pending) answerSafely(ctx context.Context, w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			body, err = nil, undecided(Panicked, review.PanicError(recovered))
		}
	}()
	return p.answer(ctx, w, r)
}

// answer evaluates the request of an authorised caller.
func (p *pending) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if err := review.CheckMethod(r); err != nil {
		return nil, problemf(WrongMethod, "%v", err)
	}
	if err := p.authorise(ctx, r); err != nil {
		return nil, err
	}
	leave, err := p.handler.queue.enter(ctx, p.call.User)
	if err != nil {
		return nil, err
	}
	deciding := false // then the gate's goroutine releases the slot
	defer func() {
		if !deciding {
			leave()
		}
	}()
	requests, free, err := p.read(ctx, w, r)
	if err != nil {
		return nil, err
	}
	deciding = true
	if err := p.decide(ctx, requests, func() { free(); leave() }); err != nil {
		return nil, err
	}
	return encode(p.call.Outcomes)
}

// decide reads the labels of the namespaces and calls the gate.
func (p *pending) decide(ctx context.Context, requests []gate.Request, done func()) error {
	result := review.Run(ctx, done, func(ctx context.Context) ([]gate.Outcome, error) {
		subjects := make([]*policy.Subject, len(requests))
		for i := range requests {
			subjects[i] = &requests[i].Subject
		}
		unread := review.SetLabels(ctx, p.handler.config.Namespaces, subjects...)
		return p.handler.config.Decider.DecideAll(ctx, requests, nil), errors.Join(slices.Collect(maps.Values(unread))...)
	})
	if result.Cause != Decided {
		return undecided(result.Cause, result.Err)
	}
	p.call.Outcomes, p.call.Err = result.Value, result.Err
	if len(result.Value) != len(requests) {
		return undecided(Panicked, fmt.Errorf("%d outcomes for %d requests", len(result.Value), len(requests)))
	}
	return nil
}
