package imagepolicy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/fair"
	"github.com/quaymaster/quaymaster/internal/waiting"
	"github.com/quaymaster/quaymaster/policy"
)

// exchange is one HTTP request.
type exchange struct {
	handler *Handler
	started time.Time

	question question
	cause    Cause
	outcome  gate.Outcome
	err      error
	busy     bool // the deadline passed during its own evaluation, not while waiting for others
}

// answer reads the review and decides it.
func (x *exchange) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			x.cause = Panicked
			a = x.undecided(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	release, body, err := x.read(ctx, w, r)
	if err != nil {
		return x.undecided(err)
	}
	defer release()
	x.question, err = decode(body)
	if err != nil {
		x.cause = Malformed
		return x.undecided(err)
	}
	if err := x.ask(ctx); err != nil {
		return x.undecided(err)
	}
	return decided(&x.outcome)
}

// undecided answers a review without a decision. The failure setting applies only to timeouts and
// overload. An unreadable review is denied: otherwise its writer could get it admitted.
func (x *exchange) undecided(err error) answer {
	x.err = err
	switch {
	case x.cause == Malformed:
		return answer{reason: wordUnable + "\n  why: " + plain(err.Error(), maxField)}
	case x.cause.isSilence() && !x.busy && x.handler.failsOpen(new(x.subject())):
		return answer{allowed: true}
	}
	return answer{reason: wordUnable + "\n  why: " + sentences[x.cause] + "\n  next: retry; if it persists, contact the gateway's administrator"}
}

// record calls the recorder and ignores its panics.
func (x *exchange) record(ctx context.Context, allowed bool) {
	defer func() { _ = recover() }()
	x.handler.recorder.Record(ctx, Review{
		Namespace: x.question.namespace, Images: x.question.images, Allowed: allowed,
		Cause: x.cause, Outcome: x.outcome, Err: x.err, Duration: time.Since(x.started),
	})
}

// subject returns the pod as far as a review describes it.
func (x *exchange) subject() policy.Subject {
	return policy.Subject{
		Version: "v1", Kind: "Pod", Namespace: x.question.namespace, Operation: "CREATE", Bare: true, Time: x.started,
	}
}

// read reserves memory for the body and reads it. The result is valid until release.
func (x *exchange) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (release func(), body []byte, err error) {
	x.cause = Malformed
	if r.Method != http.MethodPost {
		return nil, nil, errors.New("method must be POST, got " + strconv.Quote(plain(r.Method, maxField)))
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, nil, fmt.Errorf("the body must be of type application/json, got %q", plain(r.Header.Get("Content-Type"), maxField))
	}
	size := r.ContentLength
	if size > MaxBody {
		return nil, nil, fmt.Errorf("the body has %d bytes, more than %d (MaxBody)", size, MaxBody)
	}
	if size < 0 {
		size = MaxBody
	}
	free, err := x.handler.config.Queue.Reserve(ctx, r.RemoteAddr, size)
	if err != nil {
		x.cause = QueueFull
		return nil, nil, err
	}
	buffer, _ := x.handler.buffers.Get().(*bytes.Buffer)
	if buffer == nil {
		buffer = &bytes.Buffer{}
	}
	release = func() {
		if buffer.Cap() <= keptBuffer {
			buffer.Reset()
			x.handler.buffers.Put(buffer)
		}
		free()
	}
	defer cutOff(ctx, w)()
	if _, err = buffer.ReadFrom(io.LimitReader(r.Body, MaxBody+1)); err != nil {
		err = fmt.Errorf("read the body: %w", err)
	} else if buffer.Len() > MaxBody {
		err = fmt.Errorf("the body has more than %d bytes (MaxBody)", MaxBody)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return release, buffer.Bytes(), nil
}

// cutOff aborts the reading of a body when ctx ends.
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

// judged is the result of the goroutine that calls the gate.
type judged struct {
	outcome gate.Outcome
	cause   Cause
	err     error
}

// ask waits for a slot and for the gate. It does not wait for a call that exceeds its deadline;
// that call keeps its slot until it returns.
func (x *exchange) ask(ctx context.Context) error {
	request, err := gate.ForImages(x.question.namespace, "", x.question.images)
	if err != nil {
		x.cause = Malformed
		return err
	}
	request.Pinning, request.Subject = gate.PinNever, x.subject()
	leave, err := x.handler.config.Queue.Enter(ctx, x.question.namespace)
	if err != nil {
		x.cause = QueueFull
		if waited, ok := errors.AsType[*fair.WaitError](err); ok && waited.Reason == fair.Share {
			x.cause = ShareTaken
		}
		return err
	}
	ctx = waiting.With(ctx)
	result := make(chan judged, 1)
	go func() {
		j := x.handler.judge(ctx, request)
		leave()
		result <- j
	}()
	var j judged
	select {
	case j = <-result:
	case <-ctx.Done():
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case j = <-result:
		case <-late.C:
			x.busy = !waiting.Mostly(ctx)
			j = judged{cause: TimedOut, err: fmt.Errorf("decide: %w", context.Cause(ctx))}
		}
	}
	x.outcome, x.cause, x.err = j.outcome, j.cause, j.err
	if j.cause != Decided {
		return j.err
	}
	return nil
}

// judge recovers a panic, which in its goroutine would otherwise end the process and all requests
// in flight.
func (h *Handler) judge(ctx context.Context, request gate.Request) (j judged) {
	defer func() {
		if p := recover(); p != nil {
			j = judged{cause: Panicked, err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	s := &request.Subject
	known := waiting.Begin(ctx)
	labels, err := h.config.Namespaces.Labels(ctx, s.Namespace)
	known()
	if err != nil {
		err = fmt.Errorf("labels of namespace %s: %w", s.Namespace, err)
	} else {
		s.NamespaceLabels, s.NamespaceKnown = withName(labels, s.Namespace), true
	}
	return judged{outcome: h.config.Decider.Decide(ctx, request), cause: Decided, err: err}
}

// namespaceName is the label that the API server sets on every namespace.
const namespaceName = "kubernetes.io/metadata.name"

// withName adds the label that the API server sets, if it is missing.
func withName(labels map[string]string, name string) map[string]string {
	if labels[namespaceName] == name {
		return labels
	}
	named := make(map[string]string, len(labels)+1)
	maps.Copy(named, labels)
	named[namespaceName] = name
	return named
}
