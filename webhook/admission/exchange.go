package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"
)

// exchange is one HTTP request to any endpoint.
type exchange struct {
	door    Door
	options *options
	buffers *sync.Pool
	started time.Time
	judge   judge
	shadow  bool // see Review.Shadow

	question question
}

// judge decides a request, or answers one that could not be decided.
type judge interface {
	decide(ctx context.Context, q *question) response
	undecided(q *question, cause Cause) response
}

// httpError is the response to an invalid review.
type httpError struct {
	status int
	err    error
}

func (e *httpError) Error() string { return e.err.Error() }

func badRequest(format string, args ...any) error {
	return &httpError{status: http.StatusBadRequest, err: fmt.Errorf(format, args...)}
}

func (x *exchange) serve(w http.ResponseWriter, r *http.Request) {
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
	body := answer.append(make([]byte, 0, 512))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // client disconnected
}

// refuse answers an invalid review with an HTTP error.
func (x *exchange) refuse(ctx context.Context, w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	if known, ok := errors.AsType[*httpError](err); ok {
		status = known.status
	}
	if x.question.cause == "" {
		x.question.cause = Malformed
	}
	x.question.err = err
	x.record(ctx, false)
	http.Error(w, plain(err.Error(), maxField), status)
}

// record calls the recorder and ignores its panics.
func (x *exchange) record(ctx context.Context, allowed bool) {
	defer func() { _ = recover() }()
	q := &x.question
	x.options.recorder.Record(ctx, Review{
		Door: x.door, UID: q.request.uid, Operation: q.request.operation,
		Group: q.request.group, Version: q.request.version, Kind: q.request.kind, Subresource: q.request.subresource,
		Namespace: q.request.namespace, Name: q.name(), User: q.request.user, DryRun: q.request.dryRun,
		Mirror: q.mirror, Allowed: allowed, Shadow: x.shadow, Cause: q.cause, Outcome: q.outcome, Err: q.err,
		Duration: time.Since(x.started),
	})
}

// answer reads the review and decides it.
func (x *exchange) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) (response, error) {
	release, body, err := x.read(ctx, w, r)
	if err != nil {
		return response{}, err
	}
	defer release()
	q := &x.question
	if q.cause != "" { // only the head was read
		return x.unread(body)
	}
	review, err := decode(body)
	if err != nil {
		q.cause, q.err = Malformed, badRequest("read the AdmissionReview: %w", err)
		return x.unread(body)
	}
	q.request = review.request
	if err := review.check(); err != nil {
		if q.request.uid == "" || !review.hasRequest {
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
func (x *exchange) unread(front []byte) (response, error) {
	q := &x.question
	q.request = decodeHead(front[:min(len(front), maxHead)])
	q.request.object, q.request.oldObject = nil, nil
	if q.request.uid == "" {
		return response{}, q.err
	}
	if q.cause == QueueFull {
		q.describe(x.options.kinds)
		return q.sign(x.judge.undecided(q, QueueFull)), nil
	}
	return q.sign(malformed(plain(q.err.Error(), maxField))), nil
}

// settle decides the request. A panic here comes from code outside of the gate.
func (x *exchange) settle(ctx context.Context) (answer response) {
	q := &x.question
	q.describe(x.options.kinds)
	defer func() {
		if p := recover(); p != nil {
			q.cause, q.err = Panicked, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
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
			reviewKind, reviewVersion, strconv.Quote(plain(e.kind, maxField)), strconv.Quote(plain(e.apiVersion, maxField)))
	case !e.hasRequest:
		return errors.New("the AdmissionReview has no request")
	case e.request.uid == "":
		return errors.New("the request has no uid")
	}
	return nil
}

// read reserves memory for the body and reads it. The result is valid until release.
func (x *exchange) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (release func(), body []byte, err error) {
	if r.Method != http.MethodPost {
		return nil, nil, badRequest("method must be POST, got %s", r.Method)
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" {
			return nil, nil, badRequest("the body must be of type application/json, got %q", plain(kind, maxField))
		}
	}
	size := r.ContentLength
	if size > MaxBody {
		return x.readHead(ctx, w, r, Malformed, badRequest("the body has %d bytes, more than %d (MaxBody)", size, MaxBody))
	}
	if size < 0 {
		size = MaxBody
	}
	free, err := x.options.queue.Reserve(ctx, r.RemoteAddr, size)
	if err != nil {
		return x.readHead(context.WithoutCancel(ctx), w, r, QueueFull, &httpError{status: http.StatusServiceUnavailable, err: err})
	}
	buffer, _ := x.buffers.Get().(*bytes.Buffer)
	if buffer == nil {
		buffer = &bytes.Buffer{}
	}
	release = func() {
		if buffer.Cap() <= keptBuffer {
			buffer.Reset()
			x.buffers.Put(buffer)
		}
		free()
	}
	defer cutOff(ctx, w)()
	if r.ContentLength > 0 {
		buffer.Grow(int(size) + bytes.MinRead) // else the last read would grow it
	}
	_, err = buffer.ReadFrom(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case err != nil:
		err = badRequest("read the body: %w", err)
	case buffer.Len() > MaxBody:
		x.question.cause, x.question.err = Malformed, badRequest("the body has more than %d bytes (MaxBody)", MaxBody)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return release, buffer.Bytes(), nil
}

// readHead reads the beginning of a body that exceeds a limit, and records the reason.
func (x *exchange) readHead(ctx context.Context, w http.ResponseWriter, r *http.Request, cause Cause, why error) (release func(), front []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxMargin)
	defer cancel()
	defer cutOff(ctx, w)()
	x.question.cause, x.question.err = cause, why
	front, err = io.ReadAll(io.LimitReader(r.Body, maxHead))
	if err != nil {
		return nil, nil, why
	}
	return func() {}, front, nil
}

// cutOff aborts the reading of a body when ctx ends. Setting a deadline beforehand would cost a
// message to the connection's goroutine for each request.
func cutOff(ctx context.Context, w http.ResponseWriter) (stop func()) {
	done := make(chan struct{})
	unset := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // if unsupported, the server's own deadline applies
	})
	return func() {
		if !unset() {
			<-done // w must not be used after the handler has returned
		}
	}
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
