package ui

import (
	"encoding/json"
	"errors"
	"net/http"
)

// Error is the body of every answer of the API that is none.
type Error struct {
	typed
	Status int `json:"status"`
	// Reason is one of the words of docs/dashboard.md, Message a sentence for people.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// problem is why there is no answer. Its message is for who asks.
type problem struct {
	status          int
	reason, message string
}

// Error implements error.
func (p problem) Error() string { return p.message }

func malformed(message string) error {
	return problem{http.StatusBadRequest, "malformed", message}
}

// refuse answers with an error; one of an unknown kind speaks of the query.
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
		body = nil // the status says enough
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(p.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // who does not listen any more needs no answer
	}
}
