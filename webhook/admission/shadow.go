package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/quaymaster/quaymaster/workload"
)

// Shadow asks what other doors would say and admits what comes, unchanged and without a
// warning, whatever they say. It is safe for concurrent use.
type Shadow struct {
	stages  []*Handler
	policy  *PolicyHandler
	options *options
	buffers sync.Pool
}

// NewShadow makes the shadow of doors that the API server would ask one after the other:
// the next one is asked about the object as the one before would have left it, and not
// at all where that would have denied it. Each tells its own Recorder, with
// Review.Shadow. Without any door it admits and tells nobody.
func NewShadow(stages ...*Handler) (*Shadow, error) {
	s := &Shadow{stages: stages}
	for _, stage := range stages {
		if stage == nil {
			return nil, errors.New("admission: a shadow of no door")
		}
	}
	if len(stages) > 0 {
		s.options = &stages[0].options
		return s, nil
	}
	o, err := apply(nil)
	s.options = &o
	return s, err
}

// NewPolicyShadow makes the shadow of the door for policies. Who writes one that it would
// refuse is warned: policies are nobody's workload.
func NewPolicyShadow(of *PolicyHandler) (*Shadow, error) {
	if of == nil {
		return nil, errors.New("admission: a shadow of no door")
	}
	return &Shadow{policy: of, options: &of.options}, nil
}

// ServeHTTP answers one review. This is the one place that speaks: what is decided, and
// what goes wrong on the way, ends in a writer that leads nowhere.
func (s *Shadow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{options: s.options, buffers: &s.buffers, started: time.Now(), shadow: true}
	var cast shade
	switch {
	case s.policy != nil:
		x.door, cast = Compile, &policyShade{door: s.policy}
	case len(s.stages) > 0:
		x.door, cast = s.stages[0].config.Door, &objectShade{exchange: x, stages: s.stages}
	default:
		cast = noShade{}
	}
	x.judge = cast
	defer func() {
		if p := recover(); p != nil {
			x.question.cause, x.question.err = Panicked, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			x.record(r.Context(), false)
		}
		answer := response{uid: x.question.request.uid, allowed: true, warnings: cast.told()}
		body := answer.append(make([]byte, 0, 256))
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // who does not listen any more needs no answer
	}()
	x.serve(nowhere{w, http.Header{}}, r)
}

// shade judges for a shadow.
type shade interface {
	judge
	// told are the warnings for who asked.
	told() []string
}

// nowhere is a writer of which nothing arrives.
type nowhere struct {
	beneath http.ResponseWriter
	header  http.Header
}

// Header implements http.ResponseWriter.
func (n nowhere) Header() http.Header { return n.header }

// Write implements http.ResponseWriter.
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader implements http.ResponseWriter.
func (nowhere) WriteHeader(int) {}

// Unwrap lets http.ResponseController reach what is beneath.
func (n nowhere) Unwrap() http.ResponseWriter { return n.beneath }

// objectShade asks the doors for objects.
type objectShade struct {
	exchange *exchange
	stages   []*Handler
	at       int
}

func (*objectShade) told() []string { return nil }

// decide asks one door after the other.
func (s *objectShade) decide(ctx context.Context, q *question) response {
	for {
		answer := s.stages[s.at].decide(ctx, q)
		if !answer.allowed || s.at == len(s.stages)-1 {
			return answer
		}
		if q.cause != NotAsked {
			s.exchange.record(ctx, true)
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
		s.exchange.door = s.stages[s.at].config.Door
		*q = question{request: next}
		q.describe(s.exchange.options.kinds)
	}
}

func (s *objectShade) undecided(q *question, cause Cause) response {
	return s.stages[s.at].undecided(q, cause)
}

// patched returns an object as the API server would have it after a patch.
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

// policyShade asks the door for policies.
type policyShade struct {
	door     *PolicyHandler
	warnings []string
}

func (s *policyShade) told() []string { return s.warnings }

func (s *policyShade) decide(ctx context.Context, q *question) response {
	answer := s.door.decide(ctx, q)
	s.warnings = answer.warnings
	if !answer.allowed && q.cause == Decided {
		s.warnings = []string{warning(answer.message)}
	}
	return answer
}

func (s *policyShade) undecided(q *question, cause Cause) response {
	return s.door.undecided(q, cause)
}

// noShade asks nobody.
type noShade struct{}

func (noShade) told() []string { return nil }

func (noShade) decide(context.Context, *question) response { return response{allowed: true} }

func (noShade) undecided(*question, Cause) response { return response{allowed: true} }
