package ui

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// apiPrefix begins the paths of the API.
const apiPrefix = "/api/v1/"

// Leader is the replica that leads: it scans, and so knows what others do not.
type Leader interface {
	// View returns what the leader answers to a target, a path of the API with its
	// query. ErrLeads means that this replica leads itself, or that there is no other;
	// any other error that the leader did not answer, in words for who looks.
	View(ctx context.Context, target string) (status int, body []byte, err error)
}

// ErrLeads says that nobody else is to be asked.
var ErrLeads = errors.New("this replica leads")

// WithLeader has the leader asked before this replica answers what it knows itself. Who
// may read is found out here, and not asked there again.
func WithLeader(l Leader) Option {
	return func(o *options) error {
		if l == nil {
			return errors.New("leader: want one")
		}
		o.leader = l
		return nil
	}
}

// led returns the leader's answer; nil where this replica is to answer, and why then its
// word is not the leader's, if it is not. Of what the leader does not know, this replica
// may know more.
func (h *Handler) led(r *http.Request) (body []byte, alone string) {
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
		return nil, "the replica that leads has too much to answer"
	default:
		return nil, "the replica that leads does not know it"
	}
}

// View answers a target, a path of the API with its query, to another replica that has
// found out who asks, with what this one knows itself.
func (h *Handler) View(ctx context.Context, target string) (status int, body []byte) {
	shown := &page{header: http.Header{}, status: http.StatusOK}
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

// show answers a question of another replica.
func (h *Handler) show(q question) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := h.enter()
		if err != nil {
			refuse(w, r, err)
			return
		}
		defer leave()
		p, err := parametersOf(r.URL, q.parameters)
		if err != nil {
			refuse(w, r, err)
			return
		}
		q.tell(w, r, p)
	})
}

// page is an answer in memory; it implements http.ResponseWriter.
type page struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *page) WriteHeader(status int) { p.status = status }

// Write implements http.ResponseWriter.
func (p *page) Write(text []byte) (int, error) { return p.body.Write(text) }
