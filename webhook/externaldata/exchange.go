package externaldata

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// exchange is one HTTP request.
type exchange struct {
	handler *Handler
	started time.Time
	items   []Item
	cause   Cause // if there are no items
	err     error
}

// answer reads the request and decides it. Without items it returns a system error.
func (x *exchange) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) ([]item, string) {
	release, body, err := x.read(ctx, w, r)
	if errors.Is(err, errBusy) {
		return nil, x.unread(QueueFull, err, sentences[QueueFull])
	}
	if err != nil {
		return nil, x.unread(Malformed, err, err.Error())
	}
	defer release()
	keys, err := decode(body)
	if err != nil {
		return nil, x.unread(Malformed, err, err.Error())
	}
	return x.settle(ctx, keys), ""
}

// unread records why a request could not be read, and returns the text for the client.
func (x *exchange) unread(cause Cause, err error, say string) string {
	x.cause, x.err = cause, err
	return plain(say, maxError)
}

// record calls the recorder and ignores its panics.
func (x *exchange) record(ctx context.Context) {
	defer func() { _ = recover() }()
	x.handler.recorder.Record(ctx, Batch{Door: x.handler.config.Door, Items: x.items, Cause: x.cause, Err: x.err, Duration: time.Since(x.started)})
}

// settle decides the valid keys and answers all of them.
func (x *exchange) settle(ctx context.Context, keys []string) []item {
	x.items = make([]Item, len(keys))
	parsed := make([]key, len(keys))
	var asked []int
	for i, text := range keys {
		x.items[i].Key, x.items[i].Cause = text, Malformed
		parsed[i], x.items[i].Err = x.handler.keys.parse(text)
		if x.items[i].Err == nil {
			asked = append(asked, i)
		}
	}
	if len(asked) > 0 {
		questions := make([]key, len(asked))
		for n, i := range asked {
			questions[n] = parsed[i]
		}
		j := x.ask(ctx, questions)
		for n, i := range asked {
			x.items[i].Cause, x.items[i].Err = j.cause, j.err
			if j.cause == Decided {
				x.items[i].Outcome, x.items[i].Err = j.outcomes[n], j.labels[questions[n].namespace].err
			}
		}
	}
	answers := make([]item, len(keys))
	for i := range x.items {
		answers[i] = x.handler.answer(&x.items[i], parsed[i].image)
		x.items[i].Allowed = answers[i].Error == ""
	}
	return answers
}

// errBusy means that there was no memory for the body.
var errBusy = errors.New("no memory for the request")

// read reserves memory for the body and reads it. The result is valid until release.
func (x *exchange) read(ctx context.Context, w http.ResponseWriter, r *http.Request) (release func(), body []byte, err error) {
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
		return nil, nil, fmt.Errorf("%w: %w", errBusy, err)
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
	outcomes []gate.Outcome
	labels   map[string]labelled
	cause    Cause
	err      error
}

// ask waits for a slot and for the gate. It does not wait for a call that exceeds its deadline;
// that call keeps its slot until it returns.
func (x *exchange) ask(ctx context.Context, keys []key) judged {
	leave, err := x.handler.config.Queue.Enter(ctx, "")
	if err != nil {
		return judged{cause: QueueFull, err: err}
	}
	result := make(chan judged, 1)
	go func() {
		j := x.handler.judge(ctx, keys)
		leave()
		result <- j
	}()
	select {
	case j := <-result:
		return j
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case j := <-result:
		return j
	case <-late.C:
		return judged{cause: TimedOut, err: fmt.Errorf("decide: %w", context.Cause(ctx))}
	}
}

// judge recovers a panic, which in its goroutine would otherwise end the process and all requests
// in flight.
func (h *Handler) judge(ctx context.Context, keys []key) (j judged) {
	defer func() {
		if p := recover(); p != nil {
			j = judged{cause: Panicked, err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
	}()
	requests, labels, err := h.requests(ctx, keys)
	if err != nil {
		return judged{cause: Panicked, err: err}
	}
	outcomes := h.config.Decider.DecideAll(ctx, requests, nil)
	if len(outcomes) != len(keys) {
		return judged{cause: Panicked, err: fmt.Errorf("%d outcomes for %d keys", len(outcomes), len(keys))}
	}
	return judged{outcomes: outcomes, labels: labels, cause: Decided}
}
