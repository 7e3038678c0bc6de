package record

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"golang.org/x/time/rate"
)

const (
	// DefaultStatusQPS bounds the conditions written in a second, and statusBurst a burst.
	DefaultStatusQPS = 10
	statusBurst      = 20
	// maxPending bounds the pending policies; further ones are dropped and counted.
	maxPending = 10_000
	// maxTries bounds the attempts of one condition, and statusPause is the time between them.
	maxTries    = 5
	statusPause = 2 * time.Second
)

// Object identifies the policy of a condition.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	// UID is the UID of the policy: a later policy with the same name is ignored. Required.
	UID types.UID
	// Within is the field of the status that contains the conditions, and the field ready with
	// the status of the condition. It is empty where the conditions are in the status itself,
	// without ready.
	Within string
}

// StatusOptions are the dependencies of Status.
type StatusOptions struct {
	// Client is required.
	Client dynamic.Interface
	// QPS bounds the conditions written in a second; 0 means DefaultStatusQPS.
	QPS float64
	// Failed is called when a condition was not written. May be nil.
	Failed func(error)
}

// Status writes conditions into the status of policies, and retains those of other writers. The
// caller of Set ensures that no other engine owns the status. It is safe for concurrent use.
// Create one with NewStatus.
type Status struct {
	options StatusOptions
	limiter *rate.Limiter
	wake    chan struct{}
	dropped atomic.Uint64

	mu      sync.Mutex
	pending map[Object]attempt
	order   []Object // of those in pending, the oldest first
}

type attempt struct {
	condition metav1.Condition
	tries     int
}

// NewStatus creates a Status, and returns an error for invalid options.
func NewStatus(o StatusOptions) (*Status, error) {
	if o.Client == nil || o.QPS < 0 {
		return nil, errors.New("status of policies: Client is required, and QPS must not be below 0")
	}
	if o.QPS == 0 {
		o.QPS = DefaultStatusQPS
	}
	return &Status{
		options: o, limiter: rate.NewLimiter(rate.Limit(o.QPS), statusBurst),
		wake: make(chan struct{}, 1), pending: make(map[Object]attempt),
	}, nil
}

// Set queues a condition, and replaces a pending one of the same object. It never blocks. It sets
// the condition's LastTransitionTime.
func (s *Status) Set(object Object, condition metav1.Condition) {
	s.mu.Lock()
	_, known := s.pending[object]
	room := known || len(s.pending) < maxPending
	if room {
		s.pending[object] = attempt{condition: condition}
	}
	if room && !known {
		s.order = append(s.order, object)
	}
	s.mu.Unlock()
	if !room {
		s.dropped.Add(1)
		return
	}
	s.nudge()
}

// Dropped counts the conditions that were not written.
func (s *Status) Dropped() uint64 { return s.dropped.Load() }

func (s *Status) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run writes conditions until ctx ends.
func (s *Status) Run(ctx context.Context) {
	var later <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-later:
		}
		later = nil
		for _, again := range s.round(ctx) {
			later = time.After(statusPause)
			s.mu.Lock()
			if _, newer := s.pending[again.object]; !newer {
				s.pending[again.object] = again.attempt
				s.order = append(s.order, again.object)
			}
			s.mu.Unlock()
		}
	}
}

type failedAttempt struct {
	object Object
	attempt
}

// round writes the pending conditions in their latest state, and returns those to retry.
func (s *Status) round(ctx context.Context) (again []failedAttempt) {
	for {
		s.mu.Lock()
		left := len(s.order)
		s.mu.Unlock()
		if left == 0 || s.limiter.Wait(ctx) != nil {
			return again
		}
		s.mu.Lock()
		object := s.order[0]
		a := s.pending[object]
		s.order = s.order[1:]
		delete(s.pending, object)
		s.mu.Unlock()
		if !s.try(ctx, object, &a) {
			again = append(again, failedAttempt{object, a})
		}
	}
}

// try writes one condition, and returns false if it must be retried.
func (s *Status) try(ctx context.Context, object Object, a *attempt) bool {
	err := write(ctx, s.options.Client, Desired{Object: object, Condition: a.condition})
	if err == nil || apierrors.IsNotFound(err) || ctx.Err() != nil {
		return true
	}
	a.tries++
	if s.options.Failed != nil {
		s.options.Failed(fmt.Errorf("write the status of %s %s (try %d of %d): %w", object.Resource.Resource, object.Name, a.tries, maxTries, err))
	}
	if a.tries >= maxTries || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		s.dropped.Add(1)
		return true
	}
	return false
}

func conditionsOf(object *unstructured.Unstructured, within string) ([]metav1.Condition, error) {
	status, ok := object.Object["status"].(map[string]any)
	if ok && within != "" {
		status, ok = status[within].(map[string]any)
	}
	if !ok {
		return nil, nil
	}
	var known struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"conditions": status["conditions"]}, &known); err != nil {
		return nil, fmt.Errorf("read the conditions that are there: %w", err)
	}
	return known.Conditions, nil
}
