package page

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/quaymaster/quaymaster/report"
)

// ErrorKind is the kind of an Error; its version is report.APIVersion.
const ErrorKind = "Error"

// Error is the body of every error response of an API of a page.
type Error struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Status     int    `json:"status"`
	// Reason is one of the words of the page's documentation, Message a sentence for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Problem is an error response. Its message is shown to the client.
type Problem struct {
	Status          int
	Reason, Message string
	// Allow are the methods of a resource, for the status 405; nil means GET and HEAD.
	Allow []string
}

// Error implements error.
func (p Problem) Error() string { return p.Message }

// Refuse writes an error response. Errors of other types are caused by the request and give 400.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[Problem](err)
	if !ok {
		p = Problem{Status: http.StatusBadRequest, Reason: "malformed", Message: err.Error()}
	}
	header := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="quaymaster"`)
	case http.StatusMethodNotAllowed:
		header.Set("Allow", "GET, HEAD")
		if p.Allow != nil {
			header.Set("Allow", strings.Join(p.Allow, ", "))
		}
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		header.Set("Retry-After", "1")
	}
	body, err := json.Marshal(Error{report.APIVersion, ErrorKind, p.Status, p.Reason, p.Message})
	if err != nil {
		body = nil // the status is sufficient
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // client disconnected
	}
}
