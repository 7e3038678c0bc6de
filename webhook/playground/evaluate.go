package playground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/policy/suite/trial"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/internal/page"
)

// EvaluationKind is the kind of an Evaluation; its version is report.APIVersion. Within a version, fields are
// only added.
const EvaluationKind = "Evaluation"

// Evaluation is the response of api/v1/evaluate.
type Evaluation struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	trial.Report
}

// evaluate answers a request for an evaluation. What could not be evaluated, for whatever reason, is an error
// and never a result.
func (h *Handler) evaluate(w http.ResponseWriter, r *http.Request, caller string) {
	documents, err := h.read(w, r)
	if err != nil {
		page.Refuse(w, r, err)
		return
	}
	found, err := h.run(r.Context(), documents, caller)
	if err != nil {
		page.Refuse(w, r, problemOf(err))
		return
	}
	body, err := json.Marshal(Evaluation{report.APIVersion, EvaluationKind, found})
	switch {
	case err != nil:
		page.Refuse(w, r, page.Problem{Status: http.StatusInternalServerError, Reason: "internal", Message: "internal error: the results cannot be encoded"})
		return
	case len(body) > maxAnswer:
		page.Refuse(w, r, tooLarge(fmt.Sprintf("the results have more than %d bytes: evaluate fewer objects at once", maxAnswer)))
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	page.NewFile("application/json", append(body, '\n')).Serve(w, r, http.StatusOK)
}

func tooLarge(message string) error {
	return page.Problem{Status: http.StatusRequestEntityTooLarge, Reason: "too-large", Message: message}
}

// read reads the documents of a request from the page itself.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) (trial.Documents, error) {
	var none trial.Documents
	if r.Method != http.MethodPost {
		return none, page.Problem{
			Status: http.StatusMethodNotAllowed, Reason: "wrong-method", Message: "an evaluation is a POST", Allow: []string{http.MethodPost},
		}
	}
	if err := h.origin.Check(r); err != nil {
		return none, page.Problem{Status: http.StatusForbidden, Reason: "foreign-origin", Message: "the request is from another page"}
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || r.Header.Get("Content-Encoding") != "" {
		return none, page.Problem{
			Status: http.StatusUnsupportedMediaType, Reason: "wrong-type", Message: "want Content-Type: application/json, without a Content-Encoding",
		}
	}
	body, err := limit.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody+1), MaxBody, "the body")
	if exceeded, ok := errors.AsType[*limit.ExceededError](err); ok {
		return none, tooLarge(exceeded.Error())
	}
	if err != nil {
		return none, errors.New("the body cannot be read")
	}
	return decode(body)
}

// decode decodes a request.
func decode(body []byte) (trial.Documents, error) {
	var documents trial.Documents
	problems, err := strictjson.Decode(body, &documents)
	if err == nil && len(problems) > 0 {
		err = problems[0]
	}
	if err != nil {
		return trial.Documents{}, fmt.Errorf("the body is no request: %w", err)
	}
	return documents, nil
}

// errPanic is the answer to a defect; its cause is not the client's to see.
var errPanic = errors.New("internal error, which is a defect")

// run evaluates documents in a seat. The seat is free once the evaluation has ended, which may be after the time.
func (h *Handler) run(ctx context.Context, documents trial.Documents, caller string) (trial.Report, error) {
	hold, err := h.enter(ctx, caller)
	if err != nil {
		return trial.Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	type result struct {
		report trial.Report
		err    error
	}
	done := make(chan result, 1)
	go func() {
		answer := result{err: errPanic}
		defer func() {
			_ = recover() // errPanic stays
			hold.Leave()
			done <- answer
		}()
		found, err := h.config.Evaluator.Evaluate(ctx, documents)
		answer = result{found, err}
	}()
	select {
	case <-ctx.Done():
		return trial.Report{}, ctx.Err()
	case answer := <-done:
		return answer.report, answer.err
	}
}

// enter waits for a seat.
func (h *Handler) enter(ctx context.Context, caller string) (fairqueue.Hold, error) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	hold, err := h.queue.Enter(ctx, fairqueue.Claim{Tenant: caller, Alone: caller == ""})
	if err != nil {
		return hold, page.Problem{
			Status: http.StatusServiceUnavailable, Reason: "busy", Message: "not evaluated: other evaluations are in progress; retry",
		}
	}
	return hold, nil
}

// problemOf is the response to an evaluation that failed.
func problemOf(err error) error {
	if _, ok := errors.AsType[page.Problem](err); ok {
		return err
	}
	if tooMany, ok := errors.AsType[*trial.TooManyError](err); ok {
		return tooLarge(tooMany.Error())
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return page.Problem{
			Status: http.StatusGatewayTimeout, Reason: "timeout", Message: "could not be evaluated within the time: evaluate fewer objects, or simpler policies",
		}
	}
	return page.Problem{Status: http.StatusInternalServerError, Reason: "internal", Message: "could not be evaluated: " + err.Error()}
}
