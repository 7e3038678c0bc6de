package ui

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// apiPrefix is the common prefix of the API's paths.
const apiPrefix = "/api/v1/"

// Leader is the leading replica. Only the leader scans, so its inventory is the most complete.
type Leader interface {
	// View returns the leader's response to a target, an API path with its query. ErrLeads means
	// that this replica leads or that there is no other. Any other error means that the leader did
	// not answer; the dashboard displays its text.
	View(ctx context.Context, target string) (status int, body []byte, err error)
}

// ErrLeads means that this replica answers itself.
var ErrLeads = errors.New("this replica is the leader")

// WithLeader forwards requests to the leader before this replica answers from its own inventory.
// This replica authorises the user; the leader does not check again.
func WithLeader(l Leader) Option {
	return func(o *options) error {
		if l == nil {
			return errors.New("leader must not be nil")
		}
		o.leader = l
		return nil
	}
}

// leaderResponse returns the leader's response, or nil if this replica has to answer. The reason is empty if
// this replica leads. A replica can have entries that the leader lacks, so it also answers if the
// leader has no entry.
func (h *Handler) leaderResponse(r *http.Request) (body []byte, alone string) {
	if h.leader == nil {
		return nil, ""
	}
	status, body, err := h.leader.View(r.Context(), r.URL.RequestURI())
	switch {
	case errors.Is(err, ErrLeads):
		return nil, ""
	case err != nil:
		return nil, err.Error()
	case status == http.StatusOK:
		return body, ""
	case status == http.StatusServiceUnavailable:
		return nil, "the leader is overloaded"
	default:
		return nil, "the leader has no such entry"
	}
}

// View answers another replica's request from the own inventory. The target is an API path with its
// query. The other replica has authorised the user.
func (h *Handler) View(ctx context.Context, target string) (status int, body []byte) {
	shown := &responseBuffer{header: http.Header{}, status: http.StatusOK}
	at, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(at.Path, apiPrefix) {
		return http.StatusBadRequest, nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.RequestURI(), http.NoBody)
	if err != nil {
		return http.StatusBadRequest, nil
	}
	h.shown.ServeHTTP(shown, r)
	return shown.status, shown.body.Bytes()
}

// view serves a resource to another replica.
func (h *Handler) view(q route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := h.enter()
		if err != nil {
			page.Refuse(w, r, err)
			return
		}
		defer leave()
		p, err := parametersOf(r.URL, q.parameters)
		if err != nil {
			page.Refuse(w, r, err)
			return
		}
		q.respond(w, r, p)
	})
}

// responseBuffer is a buffered response; it implements http.ResponseWriter.
type responseBuffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (p *responseBuffer) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *responseBuffer) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *responseBuffer) Write(text []byte) (int, error) { return p.body.Write(text) }
