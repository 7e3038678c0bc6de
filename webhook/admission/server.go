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

// call is one HTTP request to any endpoint.
type call struct {
	server   *server
	reviewer reviewer
	started  time.Time
	shadow   bool // see Review.Shadow

	pending pending
}

// reviewer decides a request, or answers one that could not be decided.
type reviewer interface {
	decide(ctx context.Context, q *pending) response
	undecided(q *pending, cause Cause) response
}

func badRequest(format string, args ...any) error {
	return review.Refused(http.StatusBadRequest, format, args...)
}

func (x *call) serve(w http.ResponseWriter, r *http.Request) {
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
func (x *call) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	x.pending.cause, x.pending.err = review.ReadCause(err), err
	if x.pending.cause == QueueFull {
		status = http.StatusServiceUnavailable
	}
	x.record(ctx, false)
	http.Error(w, review.Plain(err.Error(), review.MaxField), status)
}

func (x *call) record(ctx context.Context, allowed bool) {
	q := &x.pending
	review.Record(ctx, x.server.recorder, Review{
		Endpoint: x.server.endpoint, UID: q.request.uid, Operation: q.request.operation,
		Group: q.request.group, Version: q.request.version, Kind: q.request.kind, Subresource: q.request.subresource,
		Namespace: q.request.namespace, Name: q.name(), User: q.request.user, DryRun: q.request.dryRun,
		Mirror: q.mirror, Allowed: allowed, Shadow: x.shadow, Cause: q.cause, Outcome: q.outcome, Err: q.err,
		Duration: time.Since(x.started),
	})
}

// answer reads the review and decides it.
func (x *call) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) (response, error) {
	body, err := x.server.bodies.ReadJSON(ctx, w, r)
	defer body.Release()
	if err != nil {
		return x.unread(body.Bytes, err)
	}
	parsed, err := decode(body.Bytes)
	if err != nil {
		return x.unread(body.Bytes, badRequest("read the AdmissionReview: %w", err))
	}
	q := &x.pending
	q.request = parsed.request
	if err := parsed.check(); err != nil {
		if q.request.uid == "" || !parsed.hasRequest {
			return response{}, badRequest("%w", err)
		}
		q.cause, q.err = Malformed, err
		return q.withUID(malformed(err.Error())), nil
	}
	return q.withUID(x.decideSafely(ctx)), nil
}

// unread answers an incomplete or invalid review, using its head. An HTTP error would apply the
// webhook's failure setting, so an unreadable object could get admitted. Without a UID only an HTTP
// error is possible.
func (x *call) unread(front []byte, err error) (response, error) {
	q := &x.pending
	q.request = decodeHead(front[:min(len(front), maxHead)])
	q.request.object, q.request.oldObject = nil, nil
	if q.request.uid == "" {
		return response{}, err
	}
	q.cause, q.err = review.ReadCause(err), err
	if q.cause == QueueFull {
		q.setSubject(x.server.kinds)
		return q.withUID(x.reviewer.undecided(q, QueueFull)), nil
	}
	return q.withUID(malformed(review.Plain(err.Error(), review.MaxField))), nil
}

// decideSafely decides the request. A panic here comes from code outside of the gate.
func (x *call) decideSafely(ctx context.Context) (answer response) {
	q := &x.pending
	q.setSubject(x.server.kinds)
	defer func() {
		if p := recover(); p != nil {
			q.cause, q.err = Panicked, review.PanicError(p)
			answer = x.reviewer.undecided(q, Panicked)
		}
	}()
	return x.reviewer.decide(ctx, q)
}

// check rejects reviews of another version.
func (e *admissionReview) check() error {
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
