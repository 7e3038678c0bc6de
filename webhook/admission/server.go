package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// server is the part that all endpoints share: it reads reviews and answers them.
type server struct {
	endpoint Endpoint
	queue    *Queue
	recorder Recorder
	kinds    Kinds // may be nil
	bodies   *review.Bodies
}

func newServer(endpoint Endpoint, queue *Queue, recorder Recorder, kinds Kinds) server {
	return server{
		endpoint: endpoint, queue: queue, recorder: recorder, kinds: kinds,
		bodies: &review.Bodies{Queue: queue, Max: MaxBody, Keep: keptBuffer, Head: maxHead},
	}
}

// exchange is one HTTP request to any endpoint.
type exchange struct {
	server  *server
	judge   judge
	started time.Time
	shadow  bool // see Review.Shadow

	question question
}

// judge decides a request, or answers one that could not be decided.
type judge interface {
	decide(ctx context.Context, q *question) response
	undecided(q *question, cause Cause) response
}

func badRequest(format string, args ...any) error {
	return review.Refused(http.StatusBadRequest, format, args...)
}

func (x *exchange) serve(w http.ResponseWriter, r *http.Request) {
	x.started = time.Now()
	timeout, err := timeoutOf(r.URL.RawQuery)
	if err != nil {
		x.refuse(r.Context(), w, err)
		return
	}
	ctx, cancel := context.WithDeadline(r.Context(), x.started.Add(timeout-min(maxMargin, timeout/5)))
	defer cancel()
	answer, err := x.answer(ctx, w, r)
	if err != nil {
		x.refuse(r.Context(), w, err)
		return
	}
	x.record(ctx, answer.allowed)
	review.WriteJSON(w, http.StatusOK, answer.append(make([]byte, 0, 512)))
}

// refuse answers an invalid review with an HTTP error.
func (x *exchange) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	x.question.cause, x.question.err = review.ReadCause(err), err
	if x.question.cause == QueueFull {
		status = http.StatusServiceUnavailable
	}
	x.record(ctx, false)
	http.Error(w, review.Plain(err.Error(), review.MaxField), status)
}

func (x *exchange) record(ctx context.Context, allowed bool) {
	q := &x.question
	review.Record(ctx, x.server.recorder, Review{
		Endpoint: x.server.endpoint, UID: q.request.uid, Operation: q.request.operation,
		Group: q.request.group, Version: q.request.version, Kind: q.request.kind, Subresource: q.request.subresource,
		Namespace: q.request.namespace, Name: q.name(), User: q.request.user, DryRun: q.request.dryRun,
		Mirror: q.mirror, Allowed: allowed, Shadow: x.shadow, Cause: q.cause, Outcome: q.outcome, Err: q.err,
		Duration: time.Since(x.started),
	})
}

// answer reads the review and decides it.
func (x *exchange) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) (response, error) {
	body, err := x.server.bodies.ReadJSON(ctx, w, r)
	defer body.Release()
	if err != nil {
		return x.unread(body.Bytes, err)
	}
	envelope, err := decode(body.Bytes)
	if err != nil {
		return x.unread(body.Bytes, badRequest("read the AdmissionReview: %w", err))
	}
	q := &x.question
	q.request = envelope.request
	if err := envelope.check(); err != nil {
		if q.request.uid == "" || !envelope.hasRequest {
			return response{}, badRequest("%w", err)
		}
		q.cause, q.err = Malformed, err
		return q.sign(malformed(err.Error())), nil
	}
	return q.sign(x.settle(ctx)), nil
}

// unread answers an incomplete or invalid review, using its head. An HTTP error would apply the
// webhook's failure setting, so an unreadable object could get admitted. Without a UID only an HTTP
// error is possible.
func (x *exchange) unread(front []byte, err error) (response, error) {
	q := &x.question
	q.request = decodeHead(front[:min(len(front), maxHead)])
	q.request.object, q.request.oldObject = nil, nil
	if q.request.uid == "" {
		return response{}, err
	}
	q.cause, q.err = review.ReadCause(err), err
	if q.cause == QueueFull {
		q.describe(x.server.kinds)
		return q.sign(x.judge.undecided(q, QueueFull)), nil
	}
	return q.sign(malformed(review.Plain(err.Error(), review.MaxField))), nil
}

// settle decides the request. A panic here comes from code outside of the gate.
func (x *exchange) settle(ctx context.Context) (answer response) {
	q := &x.question
	q.describe(x.server.kinds)
	defer func() {
		if p := recover(); p != nil {
			q.cause, q.err = Panicked, review.PanicError(p)
			answer = x.judge.undecided(q, Panicked)
		}
	}()
	return x.judge.decide(ctx, q)
}

// check rejects reviews of another version.
func (e *envelope) check() error {
	switch {
	case e.apiVersion != reviewVersion || e.kind != reviewKind:
		return fmt.Errorf("the body must be %s of %s, got %s of %s; set the webhook's admissionReviewVersions to [v1]",
			reviewKind, reviewVersion, strconv.Quote(review.Plain(e.kind, review.MaxField)), strconv.Quote(review.Plain(e.apiVersion, review.MaxField)))
	case !e.hasRequest:
		return errors.New("the AdmissionReview has no request")
	case e.request.uid == "":
		return errors.New("the request has no uid")
	}
	return nil
}

// timeoutOf returns the API server's timeout for the request.
func timeoutOf(query string) (time.Duration, error) {
	text, plain := strings.CutPrefix(query, "timeout=")
	if query == "" {
		return defaultTimeout, nil
	}
	if !plain || strings.ContainsAny(text, "&%+;") {
		values, err := url.ParseQuery(query)
		switch {
		case err != nil:
			return 0, badRequest("the query is not valid")
		case len(values["timeout"]) == 0:
			return defaultTimeout, nil
		case len(values["timeout"]) > 1:
			return 0, badRequest("duplicate timeout in the query")
		}
		text = values.Get("timeout")
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 || timeout > MaxTimeout {
		return 0, badRequest("timeout: must be positive and at most %s, as in timeout=10s", MaxTimeout)
	}
	return timeout, nil
}
