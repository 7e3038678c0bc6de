package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/quaymaster/quaymaster/webhook/internal/review"
	"github.com/quaymaster/quaymaster/workload"
)

// Shadow evaluates requests with other endpoints and admits them, unchanged and without warnings,
// regardless of the results. It is safe for concurrent use.
type Shadow struct {
	stages []*Handler
	policy *PolicyHandler
	server *server // of the first endpoint
}

// NewShadow makes the shadow of endpoints that the API server would call in this order. Each one
// gets the object as the previous one would have left it; the sequence ends with the first denial.
// Each calls its own Recorder with Review.Shadow. Without endpoints the shadow admits and records
// nothing.
func NewShadow(stages ...*Handler) (*Shadow, error) {
	for _, stage := range stages {
		if stage == nil {
			return nil, errors.New("admission: an endpoint must not be nil")
		}
	}
	if len(stages) > 0 {
		return &Shadow{stages: stages, server: &stages[0].server}, nil
	}
	queue, err := NewQueue(QueueBounds{})
	if err != nil {
		return nil, err
	}
	return &Shadow{server: new(newServer("", queue, unrecorded{}, nil))}, nil
}

// unrecorded is a Recorder that discards results.
type unrecorded struct{}

func (unrecorded) Record(context.Context, Review) {}

// NewPolicyShadow makes the shadow of the endpoint for policies. The author of a broken policy gets
// a warning: policies are not workloads, so the warning disturbs no deployment.
func NewPolicyShadow(of *PolicyHandler) (*Shadow, error) {
	if of == nil {
		return nil, errors.New("admission: an endpoint must not be nil")
	}
	return &Shadow{policy: of, server: &of.server}, nil
}

// ServeHTTP handles one review. Only this function writes the response: responses and errors of the
// wrapped endpoints are discarded.
func (s *Shadow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &call{server: s.server, shadow: true}
	var shadow shadowReviewer
	switch {
	case s.policy != nil:
		shadow = &policyShadow{endpoint: s.policy}
	case len(s.stages) > 0:
		shadow = &objectShadow{call: x, stages: s.stages}
	default:
		shadow = emptyShadow{}
	}
	x.reviewer = shadow
	defer func() {
		if p := recover(); p != nil {
			x.pending.cause, x.pending.err = Panicked, review.PanicError(p)
			x.record(r.Context(), false)
		}
		answer := response{uid: x.pending.request.uid, allowed: true, warnings: shadow.clientWarnings()}
		review.WriteJSON(w, http.StatusOK, answer.append(make([]byte, 0, 256)))
	}()
	x.serve(discard{w, http.Header{}}, r)
}

// shadowReviewer decides requests for a shadow.
type shadowReviewer interface {
	reviewer
	// clientWarnings returns the warnings for the client.
	clientWarnings() []string
}

// discard is a writer that discards its data.
type discard struct {
	writer http.ResponseWriter
	header http.Header
}

// Header implements http.ResponseWriter.
func (n discard) Header() http.Header { return n.header }

// Write implements http.ResponseWriter.
func (discard) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (discard) WriteHeader(int) {}

// Unwrap returns the underlying writer to http.ResponseController.
func (n discard) Unwrap() http.ResponseWriter { return n.writer }

// objectShadow evaluates with the endpoints for objects.
type objectShadow struct {
	call   *call
	stages []*Handler
	at     int
}

func (*objectShadow) clientWarnings() []string { return nil }

// decide evaluates with one endpoint after the other.
func (s *objectShadow) decide(ctx context.Context, q *pending) response {
	for {
		answer := s.stages[s.at].decide(ctx, q)
		if !answer.allowed || s.at == len(s.stages)-1 {
			return answer
		}
		if q.cause != NotAsked {
			s.call.record(ctx, true)
		}
		next := q.request
		if len(answer.patch) > 0 {
			object, err := patched(next.object, answer.patch)
			if err != nil {
				return q.refuse(err)
			}
			next.object = object
		}
		s.at++
		s.call.server = &s.stages[s.at].server
		*q = pending{request: next}
		q.setSubject(s.call.server.kinds)
	}
}

func (s *objectShadow) undecided(q *pending, cause Cause) response {
	return s.stages[s.at].undecided(q, cause)
}

// patched returns an object after a patch, as the API server would apply it.
func patched(object []byte, operations []workload.Operation) ([]byte, error) {
	patch, err := jsonpatch.DecodePatch(appendPatch(nil, operations))
	if err != nil {
		return nil, fmt.Errorf("the gateway's own patch: %w", err)
	}
	after, err := patch.Apply(object)
	if err != nil {
		return nil, fmt.Errorf("the gateway's own patch: %w", err)
	}
	return after, nil
}

// policyShadow evaluates with the endpoint for policies.
type policyShadow struct {
	endpoint *PolicyHandler
	warnings []string
}

func (s *policyShadow) clientWarnings() []string { return s.warnings }

func (s *policyShadow) decide(ctx context.Context, q *pending) response {
	answer := s.endpoint.decide(ctx, q)
	s.warnings = answer.warnings
	if !answer.allowed && q.cause == Decided {
		s.warnings = []string{warning(answer.message)}
	}
	return answer
}

func (s *policyShadow) undecided(q *pending, cause Cause) response {
	return s.endpoint.undecided(q, cause)
}

// emptyShadow evaluates nothing.
type emptyShadow struct{}

func (emptyShadow) clientWarnings() []string { return nil }

func (emptyShadow) decide(context.Context, *pending) response { return response{allowed: true} }

func (emptyShadow) undecided(*pending, Cause) response { return response{allowed: true} }
