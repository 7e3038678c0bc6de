package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// Memory is this replica's cache of facts. A gate.Gate implements it.
type Memory interface {
	// Remembered returns the cached facts by key.
	Remembered(keys []string) map[string][]byte
}

// Handler serves the requests of other replicas. It is safe for concurrent use.
type Handler struct {
	secret secret
	now    func() time.Time
	// reply handles the body of an authenticated request.
	reply func(ctx context.Context, e signedHeader, body []byte) (any, error)
	// reading holds one element per body that is being read.
	reading chan struct{}
}

// HandlerConfig holds the required settings of a Handler.
type HandlerConfig struct {
	// Key is the replicas' shared key, at least 32 random bytes.
	Key    []byte
	Memory Memory
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// NewHandler makes a Handler.
func NewHandler(config HandlerConfig) (*Handler, error) {
	s, err := newSecret(config.Key, "")
	if err != nil {
		return nil, err
	}
	if config.Memory == nil {
		return nil, errors.New("peers: a memory is required")
	}
	return newHandler(s, config.Now, func(_ context.Context, e signedHeader, body []byte) (any, error) {
		q, err := e.openRequest(body)
		if err != nil {
			return nil, err
		}
		return factResponse{Facts: fitting(config.Memory.Remembered(q.Keys))}, nil
	}), nil
}

func newHandler(s secret, now func() time.Time, reply func(context.Context, signedHeader, []byte) (any, error)) *Handler {
	if now == nil {
		now = time.Now
	}
	return &Handler{secret: s, now: now, reply: reply, reading: make(chan struct{}, maxReading)}
}

// ServeHTTP implements http.Handler. An unauthenticated request gets 403 without a reason, and its
// body is not read. While too many bodies are being read, requests get 503.
func (d *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	e, err := d.secret.open(r.Header.Get(questionHeader), r.Header.Get(macHeader), d.now())
	if err != nil {
		refuse(w, err)
		return
	}
	body, err := d.read(w, r, e)
	if err != nil {
		refuse(w, err)
		return
	}
	reply, err := d.reply(r.Context(), e, body)
	if err != nil {
		refuse(w, err)
		return
	}
	d.factResponse(w, e, reply)
}

// errBusy means that the limit on concurrent bodies is reached.
var errBusy = errors.New("too many concurrent requests")

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, errForeign):
		status = http.StatusForbidden
	case errors.Is(err, errBusy):
		status = http.StatusServiceUnavailable
	}
	w.WriteHeader(status)
}

// read reads the body of an authenticated request. Its size, time and concurrency are bounded,
// because an eavesdropper could replay the header.
func (d *Handler) read(w http.ResponseWriter, r *http.Request, e signedHeader) ([]byte, error) {
	select {
	case d.reading <- struct{}{}:
		defer func() { <-d.reading }()
	default:
		return nil, errBusy
	}
	// The server resets the deadline for the next request. If it cannot be set, the server's own
	// deadline for a request applies.
	err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, fmt.Errorf("request of a replica: %w", err)
	}
	body, err := limit.ReadAll(r.Body, e.Length, "request of a replica")
	if err != nil {
		return nil, errForeign // it differs from the header
	}
	return body, nil
}

// factResponse writes an authenticated response.
func (d *Handler) factResponse(w http.ResponseWriter, e signedHeader, what any) {
	reply, err := json.Marshal(what, json.Deterministic(true))
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(macHeader, d.secret.responseMAC(e.Nonce, reply))
	_, _ = w.Write(reply) // client disconnected
}

// fitting drops facts beyond the size limit of a response. The registry provides their evidence.
func fitting(facts map[string][]byte) map[string][]byte {
	room := maxFacts
	out := map[string][]byte{}
	for key, fact := range facts {
		if size := len(key) + len(fact); len(fact) <= maxFact && size <= room {
			room -= size
			out[key] = fact
		}
	}
	return out
}
