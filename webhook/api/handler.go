package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
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

// Namespaces returns the labels of namespaces. An error means that they could not be read; this
// includes a missing namespace.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Config holds the required settings of a Handler.
type Config struct {
	// Authenticator is nil only WithoutTokens.
	Authenticator Authenticator
	Decider       Decider
}

type options struct {
	namespaces    Namespaces // nil: labels are unknown
	recorder      Recorder
	timeout       time.Duration
	limits        Limits
	users, groups []string
	confined      bool // to users and groups
	shadow        bool
	everybody     string // the user of every caller, without a token; empty: tokens are required
}

// Option changes a default of a Handler.
type Option func(*options) error

// WithNamespaces enables the lookup of a namespace's labels. Without it, rules that match on these
// labels cannot be evaluated.
func WithNamespaces(namespaces Namespaces) Option {
	return func(o *options) error {
		if namespaces == nil {
			return errors.New("namespaces must not be nil")
		}
		o.namespaces = namespaces
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

// WithTimeout bounds a request as a whole; 25 s unless set.
func WithTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 || d > MaxTimeout {
			return fmt.Errorf("timeout %s: must be positive and at most %s", d, MaxTimeout)
		}
		o.timeout = d
		return nil
	}
}

// WithCallers restricts the endpoint to users, and members of groups, by name. By default every
// authenticated user may use it, which is too permissive for an Authenticator that accepts all
// users of a cluster.
func WithCallers(users, groups []string) Option {
	return func(o *options) error {
		if len(users)+len(groups) == 0 || slices.Contains(users, "") || slices.Contains(groups, "") {
			return errors.New("callers: names of users or groups are required")
		}
		o.users, o.groups, o.confined = slices.Clone(users), slices.Clone(groups), true
		return nil
	}
}

// WithoutTokens treats every caller as one user and requires no token. The listener must restrict
// access itself, such as a socket with file permissions. The Config then needs no Authenticator.
func WithoutTokens(user string) Option {
	return func(o *options) error {
		if user == "" {
			return errors.New("without tokens: a user name is required")
		}
		o.everybody = user
		return nil
	}
}

// ModeHeader is set to "shadow" in each response if WithShadow is set.
const ModeHeader = "Quaymaster-Mode"

// WithShadow reports in ModeHeader that nothing is enforced. The verdicts do not change; a client
// that enforces them must read the header.
func WithShadow() Option {
	return func(o *options) error {
		o.shadow = true
		return nil
	}
}

// Limits bound concurrent requests. Zero fields keep their defaults.
type Limits struct {
	// Requests is the limit of all callers together: 32. Further requests wait for at most 2 s.
	Requests int
	// PerCaller is the limit of one user: 8. Further requests are rejected at once.
	PerCaller int
}

// WithLimits sets the limits on concurrent requests.
func WithLimits(limits Limits) Option {
	return func(o *options) error {
		if limits.Requests < 0 || limits.PerCaller < 0 {
			return errors.New("limits must not be negative")
		}
		o.limits = limits
		return nil
	}
}

// Handler is the endpoint. It is safe for concurrent use.
type Handler struct {
	config Config
	options
	queue *queue
}

// New makes a Handler.
func New(config Config, with ...Option) (*Handler, error) {
	o := options{recorder: unrecorded{}, timeout: DefaultTimeout}
	for _, option := range with {
		if err := option(&o); err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
	}
	if config.Decider == nil || (config.Authenticator == nil) == (o.everybody == "") {
		return nil, errors.New("api: a decider is required, and an authenticator unless tokens are disabled")
	}
	return &Handler{config: config, options: o, queue: newQueue(o.limits)}, nil
}

// ServeHTTP handles one request. It recovers panics and records them.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{handler: h, started: time.Now()}
	ctx, cancel := context.WithDeadline(r.Context(), x.started.Add(h.timeout))
	defer cancel()
	if h.shadow {
		w.Header().Set(ModeHeader, "shadow")
	}
	body, err := x.answerSafely(ctx, w, r)
	x.call.Cause, x.call.Err = causeOf(err), errors.Join(x.call.Err, err)
	x.call.Duration = time.Since(x.started)
	x.record(ctx)
	if err != nil {
		refuse(w, err)
		return
	}
	write(w, http.StatusOK, body)
}

// exchange is one request and its result.
type exchange struct {
	handler *Handler
	started time.Time
	call    Call
}

// record calls the recorder and ignores its panics.
func (x *exchange) record(ctx context.Context) {
	defer func() { _ = recover() }()
	x.handler.recorder.Record(ctx, x.call)
}

// answerSafely turns a panic into an error.
func (x *exchange) answerSafely(ctx context.Context, w http.ResponseWriter, r *http.Request) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			body, err = nil, panicked(p)
		}
	}()
	return x.answer(ctx, w, r)
}

func panicked(p any) error {
	return &problem{cause: Panicked, message: "internal error; see the gateway's log", err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
}

// answer evaluates the request of an authorised caller.
func (x *exchange) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	h := x.handler
	if r.Method != http.MethodPost {
		return nil, problemf(WrongMethod, "method must be POST, got %s", r.Method)
	}
	if err := x.admit(ctx, r); err != nil {
		return nil, err
	}
	leave, err := h.queue.enter(ctx, x.call.User)
	if err != nil {
		return nil, err
	}
	left := false // the goroutine that evaluates releases the slot
	defer func() {
		if !left {
			leave()
		}
	}()
	requests, free, err := x.read(ctx, w, r)
	if err != nil {
		return nil, err
	}
	x.describe(ctx, requests)
	left = true
	if err := x.judge(ctx, requests, func() { free(); leave() }); err != nil {
		return nil, err
	}
	return encode(x.call.Outcomes)
}

// describe adds the labels of the namespaces to the requests.
func (x *exchange) describe(ctx context.Context, requests []gate.Request) {
	if x.handler.namespaces == nil {
		return
	}
	type answer struct {
		labels map[string]string
		err    error
	}
	known := map[string]answer{}
	for i := range requests {
		subject := &requests[i].Subject
		a, ok := known[subject.Namespace]
		if !ok {
			a.labels, a.err = x.handler.namespaces.Labels(ctx, subject.Namespace)
			known[subject.Namespace] = a
			if a.err != nil {
				x.call.Err = errors.Join(x.call.Err, fmt.Errorf("labels of namespace %s: %w", subject.Namespace, a.err))
			}
		}
		if a.err == nil {
			subject.NamespaceLabels, subject.NamespaceKnown = withName(a.labels, subject.Namespace), true
		}
	}
}

// judge calls the gate. It does not wait for a call that exceeds its deadline; that call keeps its
// slot until it returns.
func (x *exchange) judge(ctx context.Context, requests []gate.Request, done func()) error {
	type decided struct {
		outcomes []gate.Outcome
		err      error
	}
	result := make(chan decided, 1)
	go func() {
		var d decided
		defer func() {
			if p := recover(); p != nil {
				d = decided{err: panicked(p)}
			}
			done()
			result <- d
		}()
		d.outcomes = x.handler.config.Decider.DecideAll(ctx, requests, nil)
	}()
	var d decided
	select {
	case d = <-result:
	case <-ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case d = <-result:
		case <-late.C:
			return &problem{cause: TimedOut, message: "no decision in time; retry, or split the request", err: context.Cause(ctx)}
		}
	}
	if d.err == nil && len(d.outcomes) != len(requests) {
		d.err = panicked(fmt.Sprintf("%d outcomes for %d requests", len(d.outcomes), len(requests)))
	}
	x.call.Outcomes = d.outcomes
	return d.err
}
