package review

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"
)

// headTimeout bounds the reading of the beginning of a body that exceeds a limit.
const headTimeout = time.Second

// JSON is the media type of reviews.
const JSON = "application/json"

// Queue limits the work of the endpoints that share it. The caller must call the returned function
// once.
type Queue interface {
	// Reserve waits until ctx ends for memory for a body of this size. The memory is accounted to
	// the client's address.
	Reserve(ctx context.Context, from string, size int64) (release func(), err error)
	// Enter waits until ctx ends for a slot for a namespace, "" for none.
	Enter(ctx context.Context, namespace string) (leave func(), err error)
}

// Error is the reason why a request could not be read.
type Error struct {
	Cause Cause
	// Status is the HTTP status for the reason.
	Status int
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Refused returns an Error for a request that is invalid.
func Refused(status int, format string, args ...any) error {
	return &Error{Cause: Malformed, Status: status, Err: fmt.Errorf(format, args...)}
}

// ReadCause returns the cause of an error of reading a request.
func ReadCause(err error) Cause {
	if read, ok := errors.AsType[*Error](err); ok {
		return read.Cause
	}
	return Malformed
}

// Bodies reads bodies into buffers that it reuses. It is safe for concurrent use.
type Bodies struct {
	// Queue limits the memory of the bodies of all endpoints that share it; nil: it is not limited.
	Queue Queue
	// Max bounds a body, in bytes, and Keep the largest buffer that is reused.
	Max, Keep int64
	// Head is the number of bytes that are returned of a body that exceeds a limit.
	Head int64

	buffers sync.Pool
}

// Body is the body of a request, valid until its release. Its zero value is empty.
type Body struct {
	Bytes   []byte
	release func()
}

// Release ends the use of the body.
func (b Body) Release() {
	if b.release != nil {
		b.release()
	}
}

// ReadJSON reads the body of a POST request of the type JSON. An error is an *Error. The caller
// releases the body, also after an error.
func (b *Bodies) ReadJSON(ctx context.Context, w http.ResponseWriter, r *http.Request) (Body, error) {
	if err := CheckMethod(r); err != nil {
		return Body{}, err
	}
	if got := r.Header.Get("Content-Type"); got != JSON && MediaType(r) != JSON {
		return Body{}, Refused(http.StatusUnsupportedMediaType, "the body must be of type %s, got %q", JSON, Plain(got, MaxField))
	}
	return b.Read(ctx, w, r)
}

// CheckMethod refuses requests other than POST.
func CheckMethod(r *http.Request) error {
	if r.Method == http.MethodPost {
		return nil
	}
	return Refused(http.StatusMethodNotAllowed, "method must be POST, got %q", Plain(r.Method, MaxField))
}

// MediaType returns the media type of a body without its parameters; empty if it is not valid.
func MediaType(r *http.Request) string {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

// Read reserves memory for a body and reads it until ctx ends. An error is an *Error; the body is
// then empty, or the beginning of one that exceeds a limit. The caller releases the body, also
// after an error.
func (b *Bodies) Read(ctx context.Context, w http.ResponseWriter, r *http.Request) (Body, error) {
	size := r.ContentLength
	if size > b.Max {
		return b.head(ctx, w, r), Refused(http.StatusRequestEntityTooLarge, "the body has %d bytes, more than %d (MaxBody)", size, b.Max)
	}
	if size < 0 {
		size = b.Max
	}
	free := func() {}
	if b.Queue != nil {
		var err error
		free, err = b.Queue.Reserve(ctx, r.RemoteAddr, size)
		if err != nil {
			return b.head(ctx, w, r), &Error{Cause: QueueFull, Status: http.StatusServiceUnavailable, Err: err}
		}
	}
	buffer, _ := b.buffers.Get().(*bytes.Buffer)
	if buffer == nil {
		buffer = &bytes.Buffer{}
	}
	body := Body{release: func() {
		if int64(buffer.Cap()) <= b.Keep {
			buffer.Reset()
			b.buffers.Put(buffer)
		}
		free()
	}}
	defer cutOff(ctx, w)()
	if r.ContentLength > 0 {
		buffer.Grow(int(size) + bytes.MinRead) // else the last read would grow it
	}
	if _, err := buffer.ReadFrom(io.LimitReader(r.Body, b.Max+1)); err != nil {
		return body, Refused(http.StatusBadRequest, "read the body: %w", err)
	}
	body.Bytes = buffer.Bytes()
	if int64(buffer.Len()) > b.Max {
		body.Bytes = body.Bytes[:b.Head]
		return body, Refused(http.StatusRequestEntityTooLarge, "the body has more than %d bytes (MaxBody)", b.Max)
	}
	return body, nil
}

// head reads the beginning of a body that exceeds a limit. The deadline may be over: a response
// needs the beginning all the same.
func (b *Bodies) head(ctx context.Context, w http.ResponseWriter, r *http.Request) Body {
	if b.Head == 0 {
		return Body{}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), headTimeout)
	defer cancel()
	defer cutOff(ctx, w)()
	front, err := io.ReadAll(io.LimitReader(r.Body, b.Head))
	if err != nil {
		return Body{}
	}
	return Body{Bytes: front}
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
