package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"golang.org/x/time/rate"
)

const (
	// DefaultStatusQPS is how many policies get their condition written in a
	// second; statusBurst how many at once.
	DefaultStatusQPS = 10
	statusBurst      = 20
	// maxPending bounds the policies that wait; more are dropped and counted.
	maxPending = 10_000
	// maxTries is how often one condition is tried; statusPause the time between.
	maxTries    = 5
	statusPause = 2 * time.Second
)

// Object names the policy whose status is written.
type Object struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
	// UID is that of the policy which the condition is about: one of the same name
	// that was made since is left alone. Required.
	UID types.UID
	// Within is the field of the status that holds the conditions, and beside them
	// ready, which is whether the condition is true; empty where they stand in the
	// status itself and nothing stands beside them.
	Within string
}

// StatusOptions are what Status needs.
type StatusOptions struct {
	// Client is required.
	Client dynamic.Interface
	// QPS is how many are written in a second; 0 means DefaultStatusQPS.
	QPS float64
	// Failed is told why a condition was not written. May be nil.
	Failed func(error)
}

// Status writes conditions into the status of policies, beside those that
// others wrote. It writes only what it is told to: whoever calls Set decides
// that no other engine owns the status. It is safe for concurrent use. Make one
// with NewStatus.
type Status struct {
	options StatusOptions
	limiter *rate.Limiter
	wake    chan struct{}
	dropped atomic.Uint64

	mu      sync.Mutex
	pending map[Object]attempt
	order   []Object // of those in pending, the longest waiting first
}

type attempt struct {
	condition metav1.Condition
	tries     int
}

// NewStatus makes a Status; it refuses options that mean nothing.
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

// Set has a condition written soon, in place of one that still waits for the
// same object. It never waits. The condition's LastTransitionTime is set by it.
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

// Dropped returns how many conditions were given up.
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

// round writes what is pending, each as it is when its turn comes, and returns what is to
// be tried again.
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

// try writes one condition, and reports false when it is to be tried again.
func (s *Status) try(ctx context.Context, object Object, a *attempt) bool {
	err := s.write(ctx, object, a.condition)
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

func (s *Status) write(ctx context.Context, object Object, condition metav1.Condition) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	client := s.options.Client.Resource(object.Resource).Namespace(object.Namespace)
	current, err := client.Get(ctx, object.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if current.GetUID() != object.UID {
		return nil // another one of the same name
	}
	conditions, err := conditionsOf(current, object.Within)
	if err != nil {
		return err
	}
	if !meta.SetStatusCondition(&conditions, condition) {
		return nil
	}
	status := map[string]any{"conditions": conditions}
	if object.Within != "" {
		status["ready"] = condition.Status == metav1.ConditionTrue
		status = map[string]any{object.Within: status}
	}
	patch, err := json.Marshal(map[string]any{
		// With the version, what another writes meanwhile is not lost.
		"metadata": map[string]any{"resourceVersion": current.GetResourceVersion()},
		"status":   status,
	})
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
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
