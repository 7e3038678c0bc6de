package ui

import (
	"encoding/json"
	"errors"
	"net/http"
)

// Error is the body of every error response of the API.
type Error struct {
	typed
	Status int `json:"status"`
	// Reason is one of the words of docs/dashboard.md, Message a sentence for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// problem is an error response. Its message is shown to the client.
type problem struct {
	status          int
	reason, message string
}

// Error implements error.
func (p problem) Error() string { return p.message }

func malformed(message string) error {
	return problem{http.StatusBadRequest, "malformed", message}
}

// refuse writes an error response. Errors of other types are caused by the query and give 400.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	p, ok := errors.AsType[problem](err)
	if !ok {
		p = problem{http.StatusBadRequest, "malformed", err.Error()}
	}
	header := w.Header()
	switch p.status {
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", `Bearer realm="quaymaster"`)
	case http.StatusMethodNotAllowed:
		header.Set("Allow", "GET, HEAD")
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", "1")
	}
	body, err := json.Marshal(Error{of(ErrorKind), p.status, p.reason, p.message})
	if err != nil {
		body = nil // the status is sufficient
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // client disconnected
	}
}
