package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quaymaster/quaymaster/webhook/internal/review"
	"github.com/quaymaster/quaymaster/workload"
)

// Checker compiles documents.
type Checker interface {
	// Check returns the errors of a broken policy or mirror, each with the field's path. It returns
	// nil for a valid document and for one that the gateway does not manage. It returns an *Advice
	// for a broken one that is admitted all the same. The checker may use the bytes until it
	// returns.
	Check(raw []byte) error
	// Warnings returns warnings for the author of a valid document.
	Warnings(raw []byte) []string
}

// Advice is an error of a Checker for a document that is admitted with a warning, because another
// engine of the cluster runs it.
type Advice struct{ Err error }

// Error implements error.
func (a *Advice) Error() string { return a.Err.Error() }

// Unwrap returns the cause.
func (a *Advice) Unwrap() error { return a.Err }

// ImpactAnalysis evaluates policies against running workloads.
type ImpactAnalysis interface {
	// Analyze returns the reasons to reject a valid policy, one a line, or warnings for its author. It
	// ends with ctx. The rule for the bytes is that of Checker.
	Analyze(ctx context.Context, raw []byte) (warnings []string, err error)
}

// PolicyConfig holds the settings of a PolicyHandler.
type PolicyConfig struct {
	Checker Checker
	// Queue may be shared with other endpoints.
	Queue    *Queue
	Recorder Recorder
	// ImpactAnalysis evaluates valid policies; nil: all valid policies are admitted.
	ImpactAnalysis ImpactAnalysis
}

// PolicyHandler is the endpoint that rejects broken policies and mirrors, so that their author gets
// the error at once. It is safe for concurrent use.
type PolicyHandler struct {
	config PolicyConfig
	server server
}

// NewPolicies makes the endpoint for policies.
func NewPolicies(config PolicyConfig) (*PolicyHandler, error) {
	if config.Checker == nil || config.Queue == nil || config.Recorder == nil {
		return nil, errors.New("admission: Checker, Queue and Recorder must not be nil")
	}
	return &PolicyHandler{config: config, server: newServer(Policies, config.Queue, config.Recorder, nil)}, nil
}

// ServeHTTP handles one review.
func (h *PolicyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &call{server: &h.server, reviewer: h}
	x.serve(w, r)
}

func (h *PolicyHandler) decide(ctx context.Context, q *pending) response {
	if err := q.check(); err != nil {
		return q.refuse(err)
	}
	q.cause = NotAsked
	if q.passes() || q.request.subresource != "" || q.request.operation == opDelete || q.request.operation == opConnect {
		return response{allowed: true}
	}
	release, err := h.config.Queue.reserveParsed(ctx, q.request.namespace, q.request.object, q.request.oldObject)
	if err != nil {
		return q.refuse(err)
	}
	defer release()
	object, err := workload.ParseValue(q.request.object)
	if err != nil {
		return q.refuse(err)
	}
	if err := q.checkIdentity("object", object); err != nil {
		return q.refuse(err)
	}
	q.object = object
	if q.request.operation == opUpdate && !metadata(object).Member("deletionTimestamp").IsNull() &&
		onlyFinalizers(q.kind(), q.request.object, q.request.oldObject) {
		return response{allowed: true} // only finalizers are removed; the policy is in force until its deletion
	}
	leave, err := h.config.Queue.Enter(ctx, q.request.namespace)
	if err != nil {
		q.cause, q.err = review.QueueCause(err), err
		return h.undecided(q, q.cause)
	}
	defer leave()
	if err := h.config.Checker.Check(q.request.object); err != nil {
		q.cause, q.err = Decided, err
		if _, is := errors.AsType[*Advice](err); is {
			return response{allowed: true, warnings: []string{warning(broken(q, err))}}
		}
		return denied(broken(q, err))
	}
	q.cause = Decided
	var notes []string
	for _, text := range h.config.Checker.Warnings(q.request.object) {
		notes = append(notes, warning(text))
	}
	if h.config.ImpactAnalysis == nil {
		return response{allowed: true, warnings: notes}
	}
	warnings, err := h.config.ImpactAnalysis.Analyze(ctx, q.request.object)
	if err != nil {
		q.err = err
		return denied(listed(q.title()+": the guard refuses the policy", err))
	}
	return response{allowed: true, warnings: append(notes, warnings...)}
}

// document returns the common name of the request's kind.
func (q *pending) document() string {
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

// undecided denies: an unchecked document may be broken.
func (h *PolicyHandler) undecided(q *pending, cause Cause) response {
	return denied(q.title() + ": the " + q.document() + " could not be checked\n  why: " + cause.Sentence() + "\n  " + review.Next)
}

// broken lists the errors of a document, one a line.
func broken(q *pending, err error) string {
	return listed(fmt.Sprintf("%s: the %s is broken", q.title(), q.document()), err,
		fmt.Sprintf("next: correct the field; no part of a %s is ignored", q.document()))
}

// listed returns a head and the errors, one a line.
func listed(head string, err error, last ...string) string {
	var p review.Page
	p.Line(0, "%s", head)
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if line != "" {
			p.Line(2, "%s", review.Plain(line, review.MaxField))
		}
	}
	for _, line := range last {
		p.Line(2, "%s", line)
	}
	return p.Bounded(maxMessage)
}
