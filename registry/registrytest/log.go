package registrytest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Kind classifies a request.
type Kind string

// The kinds of requests.
const (
	Ping      Kind = "ping"
	Manifest  Kind = "manifest"
	Blob      Kind = "blob"
	Upload    Kind = "upload"
	Referrers Kind = "referrers"
	Tags      Kind = "tags"
	TokenKind Kind = "token"
	Other     Kind = "other"
)

// Request is one request as the registry saw it.
type Request struct {
	Method     string
	Kind       Kind
	Repository string
	Reference  string // tag or digest
	Host       string
	URI        string
	Header     http.Header
	// Proto is the version of HTTP, as in "HTTP/2.0".
	Proto string
	// HasCertificate: the client presented a certificate.
	HasCertificate bool
	// Body is the form of a token request; nil for every other kind.
	Body []byte
	// Status is the response's status; 0 before a response.
	Status int

	// start and end are ticks of a logical clock, which advances at every start
	// of a request and just before every first byte of an answer. So a request
	// that was made because of an answer always starts after its end.
	start, end int
}

// requestLog is the list of all requests.
type requestLog struct {
	mu       sync.Mutex
	clock    int
	requests []*Request
}

func (l *requestLog) begin(r *http.Request, target target) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	entry := &Request{
		Method: r.Method, Kind: target.kind, Repository: target.repository, Reference: target.reference,
		Host: r.Host, URI: r.URL.RequestURI(), Header: r.Header.Clone(), start: l.clock,
		Proto: r.Proto, HasCertificate: r.TLS != nil && len(r.TLS.PeerCertificates) > 0,
	}
	l.requests = append(l.requests, entry)
	return entry
}

func (l *requestLog) finish(entry *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if entry.end != 0 {
		return
	}
	l.clock++
	entry.end, entry.Status = l.clock, status
}

func (l *requestLog) keepBody(entry *Request, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Body = body
}

// Requests returns all requests since the start or the last Reset, oldest
// first.
func (r *Registry) Requests() []Request {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	list := make([]Request, len(r.log.requests))
	for i, entry := range r.log.requests {
		list[i] = *entry
	}
	return list
}

// Reset clears the log of requests; content stays.
func (r *Registry) Reset() {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	r.log.requests = nil
}

// Count returns how many requests had the method ("" means any) and one of the
// kinds (none means any).
func (r *Registry) Count(method string, kinds ...Kind) int {
	n := 0
	for _, request := range r.Requests() {
		if (method == "" || method == request.Method) && (len(kinds) == 0 || slices.Contains(kinds, request.Kind)) {
			n++
		}
	}
	return n
}

// Pulls returns how many requests a registry with a pull limit would have
// counted: manifest GETs that were answered with a manifest.
func (r *Registry) Pulls() int {
	n := 0
	for _, request := range r.Requests() {
		if request.Kind == Manifest && request.Method == http.MethodGet && request.Status == http.StatusOK {
			n++
		}
	}
	return n
}

// Rounds returns the length of the longest chain of requests of which each
// started after the one before it was answered: the serial round trips. Give
// the registry a Delay, so that requests made together are seen together.
func (r *Registry) Rounds() int { return rounds(r.Requests()) }

// rounds counts the most intervals that do not overlap: taking the earliest
// end first is optimal.
func rounds(requests []Request) int {
	done := slices.DeleteFunc(slices.Clone(requests), func(q Request) bool { return q.end == 0 })
	slices.SortFunc(done, func(a, b Request) int { return cmp.Compare(a.end, b.end) })
	n, last := 0, 0
	for _, request := range done {
		if request.start > last {
			n, last = n+1, request.end
		}
	}
	return n
}

// Saw reports whether secret reached the registry in any header, URI or token form. It
// searches for the plain text and for the Basic encoding of "user:secret", so pass the
// encoded form for that.
func (r *Registry) Saw(secret string) bool {
	for _, request := range r.Requests() {
		if strings.Contains(request.URI, secret) || strings.Contains(string(request.Body), secret) {
			return true
		}
		for _, values := range request.Header {
			if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, secret) }) {
				return true
			}
		}
	}
	return false
}

// SawAuthorization reports whether any request carried an Authorization
// header.
func (r *Registry) SawAuthorization() bool {
	return slices.ContainsFunc(r.Requests(), func(q Request) bool { return q.Header.Get("Authorization") != "" })
}

// String describes a request in one line, for failing tests.
func (q Request) String() string {
	return q.Method + " " + q.URI + " -> " + strconv.Itoa(q.Status)
}
