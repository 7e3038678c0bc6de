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

// Authenticator knows whose token it is. There are three results: a user, who is
// known; one without a name and no error, who is not; and an error, for could-not-look.
type Authenticator interface {
	Authenticate(ctx context.Context, token string) (policy.User, error)
}

// Decider judges objects, by one snapshot; the outcomes stand in the order of the
// requests. It always answers, at once when ctx ends.
type Decider interface {
	DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome
}

// Namespaces knows the labels of namespaces. An error means that they could not
// be read, also of a namespace that is not there.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Config is what a Handler cannot do without.
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
	everybody     string // who every caller is, without a token; empty: who the token says
}

// Option changes a default of a Handler.
type Option func(*options) error

// WithNamespaces looks up the labels of the namespace that a request names; rules
// that ask for them cannot be asked otherwise.
func WithNamespaces(namespaces Namespaces) Option {
	return func(o *options) error {
		if namespaces == nil {
			return errors.New("namespaces: want somebody who knows them")
		}
		o.namespaces = namespaces
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

// WithTimeout bounds a request as a whole; 25 s unless set.
func WithTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 || d > MaxTimeout {
			return fmt.Errorf("timeout %s: want more than nothing and at most %s", d, MaxTimeout)
		}
		o.timeout = d
		return nil
	}
}

// WithCallers confines the door to users, and members of groups, by name. Unless
// set, everybody may ask whom the Authenticator knows; for one that knows a whole
// cluster that is too many.
func WithCallers(users, groups []string) Option {
	return func(o *options) error {
		if len(users)+len(groups) == 0 || slices.Contains(users, "") || slices.Contains(groups, "") {
			return errors.New("callers: want names of users or groups")
		}
		o.users, o.groups, o.confined = slices.Clone(users), slices.Clone(groups), true
		return nil
	}
}

// WithoutTokens takes every caller for one user and asks for no token: for a
// listener that lets in only who may ask, such as a socket whose mode says so. The
// Config then needs no Authenticator.
func WithoutTokens(user string) Option {
	return func(o *options) error {
		if user == "" {
			return errors.New("without tokens: want a name for who asks")
		}
		o.everybody = user
		return nil
	}
}

// ModeHeader is set to "shadow" in each answer of a door WithShadow.
const ModeHeader = "Quaymaster-Mode"

// WithShadow says in ModeHeader that nothing is enforced. Answers are what they are: who
// asks for a verdict gets it, and who stands for an enforcement reads the header.
func WithShadow() Option {
	return func(o *options) error {
		o.shadow = true
		return nil
	}
}

// Limits say how much may be at work at once; zero fields keep their defaults.
type Limits struct {
	// Requests are those of all callers: 32. Who comes later waits 2 s at most.
	Requests int
	// PerCaller are those of one user: 8. Who comes later does not wait.
	PerCaller int
}

// WithLimits changes how much may be at work at once.
func WithLimits(limits Limits) Option {
	return func(o *options) error {
		if limits.Requests < 0 || limits.PerCaller < 0 {
			return errors.New("limits: want at least 1 request")
		}
		o.limits = limits
		return nil
	}
}

// Handler is the door. It is safe for concurrent use.
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
		return nil, errors.New("api: want a decider, and an authenticator or callers without tokens")
	}
	return &Handler{config: config, options: o, queue: newQueue(o.limits)}, nil
}

// ServeHTTP answers one request. A panic is an answer, too.
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

// exchange is one request and what becomes of it.
type exchange struct {
	handler *Handler
	started time.Time
	call    Call
}

// record tells the recorder, whose panics are its own.
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
	return &problem{cause: Panicked, message: "an internal error, which is a defect; the gateway's log has it", err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
}

// answer judges what is asked, if the caller may ask.
func (x *exchange) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	h := x.handler
	if r.Method != http.MethodPost {
		return nil, problemf(WrongMethod, "want POST, got %s", r.Method)
	}
	if err := x.admit(ctx, r); err != nil {
		return nil, err
	}
	leave, err := h.queue.enter(ctx, x.call.User)
	if err != nil {
		return nil, err
	}
	left := false // the turn is handed to the goroutine that judges
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

// describe adds the labels of namespaces to what is asked.
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

// judge asks the gate. It does not wait for one that misses its time, which keeps
// its turn until it is done.
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
			return &problem{cause: TimedOut, message: "no decision in time; ask again, or for less at once", err: context.Cause(ctx)}
		}
	}
	if d.err == nil && len(d.outcomes) != len(requests) {
		d.err = panicked(fmt.Sprintf("%d outcomes for %d requests", len(d.outcomes), len(requests)))
	}
	x.call.Outcomes = d.outcomes
	return d.err
}
