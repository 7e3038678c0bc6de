package admission

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/workload"
)

// Checker compiles documents.
type Checker interface {
	// Check returns why a document is a broken policy or mirror, each error with the field's
	// path; nil for one that compiles and for one that is not ours. The bytes are
	// the checker's until it returns.
	Check(raw []byte) error
}

// PolicyHandler is the door that refuses broken policies and mirrors, so that who writes one
// sees it at once. It is safe for concurrent use.
type PolicyHandler struct {
	checker Checker
	options options
	buffers sync.Pool
}

// NewPolicies makes the door for policies. Of the options, WithQueue and
// WithRecorder mean something to it.
func NewPolicies(checker Checker, with ...Option) (*PolicyHandler, error) {
	if checker == nil {
		return nil, errors.New("admission: want a checker of policies")
	}
	o, err := apply(with)
	if err != nil {
		return nil, err
	}
	return &PolicyHandler{checker: checker, options: o}, nil
}

// ServeHTTP answers one review.
func (h *PolicyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{door: Compile, options: &h.options, buffers: &h.buffers, started: time.Now(), judge: h}
	x.serve(w, r)
}

func (h *PolicyHandler) decide(ctx context.Context, q *question) response {
	if err := q.check(); err != nil {
		return q.refuse(err)
	}
	q.cause = NotAsked
	if q.passes() || q.request.subresource != "" || q.request.operation == opDelete || q.request.operation == opConnect {
		return response{allowed: true}
	}
	fold, err := h.options.queue.unfold(ctx, q.request.object, q.request.oldObject)
	if err != nil {
		return q.refuse(err)
	}
	defer fold()
	object, err := workload.ParseValue(q.request.object)
	if err != nil {
		return q.refuse(err)
	}
	if err := q.agrees("object", object); err != nil {
		return q.refuse(err)
	}
	q.object = object
	if !metadata(object).Member("deletionTimestamp").IsNull() && q.request.operation == opUpdate {
		return response{allowed: true} // its finalizers go, and then it does
	}
	leave, err := h.options.queue.Enter(ctx)
	if err != nil {
		q.cause, q.err = QueueFull, err
		return h.undecided(q, QueueFull)
	}
	defer leave()
	if err := h.checker.Check(q.request.object); err != nil {
		q.cause, q.err = Decided, err
		return denied(broken(q, err))
	}
	q.cause = Decided
	return response{allowed: true}
}

// document is what people call a document of the request's kind.
func (q *question) document() string {
	switch q.request.kind {
	case "RegistryMirror":
		return "mirror"
	case "PolicyException":
		return "policy exception"
	case "GlobalContextEntry":
		return "global context entry"
	}
	return "policy"
}

// undecided refuses: what comes in unseen may be broken.
func (h *PolicyHandler) undecided(q *question, cause Cause) response {
	return denied(q.title() + ": the " + q.document() + " could not be checked\n  why: " + sentences[cause] + "\n  next: try again; if it stays so, ask who runs the gateway")
}

// broken says what is wrong with a document, an error a line.
func broken(q *question, err error) string {
	var p page
	p.line(0, "%s: the %s is broken", q.title(), q.document())
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" {
			p.line(2, "%s", plain(line, maxField))
		}
	}
	p.line(2, "next: correct the field; nothing of a %s is left out in silence", q.document())
	return p.bounded(maxMessage)
}
