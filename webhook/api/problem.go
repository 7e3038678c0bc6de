package api

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// ErrorKind is the kind of the document for a request without a decision; its version is
// report.APIVersion.
const ErrorKind = "Error"

// Error is the body of every response other than 200.
type Error struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Status is the HTTP status, Reason the cause and Message a sentence for
	// people. The wording of messages may change.
	Status  int    `json:"status"`
	Reason  Cause  `json:"reason"`
	Message string `json:"message"`
}

// problem is the reason why a request is not evaluated.
type problem struct {
	cause Cause
	// message is for the caller. err is for the log and may contain more details.
	message string
	err     error
}

// Error implements error.
func (p *problem) Error() string {
	if p.err == nil {
		return p.message
	}
	return p.message + ": " + p.err.Error()
}

// Unwrap returns the error for the log.
func (p *problem) Unwrap() error { return p.err }

func problemf(cause Cause, format string, args ...any) error {
	return &problem{cause: cause, message: fmt.Sprintf(format, args...)}
}

// undecided returns the reason for a missing decision; err is for the log.
func undecided(cause Cause, err error) error {
	message := cause.Sentence()
	if cause == TimedOut {
		message += "; retry, or split the request"
	}
	return &problem{cause: cause, message: message, err: err}
}

// causeOf returns the cause of an error. An error of another type is a defect.
func causeOf(err error) Cause {
	if err == nil {
		return Decided
	}
	if p, ok := errors.AsType[*problem](err); ok {
		return p.cause
	}
	return Panicked
}

// refuse writes an error response.
func refuse(w http.ResponseWriter, err error) {
	cause, message := causeOf(err), "an internal error"
	if p, ok := errors.AsType[*problem](err); ok {
		message = review.Plain(p.message, maxMessage)
	}
	status := statuses[cause]
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="quaymaster"`)
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", http.MethodPost)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	body, err := json.Marshal(Error{APIVersion: report.APIVersion, Kind: ErrorKind, Status: status, Reason: cause, Message: message})
	if err != nil {
		body = nil // the status is sufficient
	}
	write(w, status, append(body, '\n'))
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	review.WriteJSON(w, status, body)
}

// withhold removes the pull secrets of mirrors from the outcomes. A caller may name any namespace,
// and must not learn which of these secrets it contains.
func withhold(outcomes []gate.Outcome) []gate.Outcome {
	withheld := slices.Clone(outcomes)
	for i := range withheld {
		withheld[i].Verdicts = slices.Clone(withheld[i].Verdicts)
		for j := range withheld[i].Verdicts {
			v := &withheld[i].Verdicts[j]
			v.Warnings = slices.DeleteFunc(slices.Clone(v.Warnings), func(r policy.Reason) bool { return r.Code == policy.NoPullSecret })
			if v.Redirect != nil {
				redirect := *v.Redirect
				redirect.PullSecrets = nil
				v.Redirect = &redirect
			}
		}
	}
	return withheld
}

// encode writes the record.
func encode(outcomes []gate.Outcome) ([]byte, error) {
	var body bytes.Buffer
	if err := report.JSON(&body, withhold(outcomes)); err != nil {
		return nil, undecided(Panicked, err)
	}
	return body.Bytes(), nil
}
