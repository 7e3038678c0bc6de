package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	leases "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// stateTimeout bounds one request.
const stateTimeout = 5 * time.Second

// ErrUnreadable means that a stored state cannot be decoded.
var ErrUnreadable = errors.New("unreadable state")

// State stores a value, as JSON in an annotation of a Lease that is not used for an election: a
// gateway may write Leases anyway.
type State[T any] struct {
	Client coordination.LeasesGetter
	// Namespace and Name are those of the Lease.
	Namespace, Name string
	Annotation      string
	// Holder is the identity of the writer, for diagnosis.
	Holder string
}

// Load returns the last saved value and its time, both zero if none was saved. The error is
// ErrUnreadable if the value cannot be decoded.
func (s State[T]) Load(ctx context.Context) (value T, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	lease, err := s.Client.Leases(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return value, at, nil
	case err != nil:
		return value, at, err
	}
	if lease.Spec.RenewTime != nil {
		at = lease.Spec.RenewTime.Time
	}
	if text := lease.Annotations[s.Annotation]; text != "" {
		var read T
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			return value, at, fmt.Errorf("lease %s/%s, annotation %s: %w: %w", s.Namespace, s.Name, s.Annotation, ErrUnreadable, err)
		}
		value = read
	}
	return value, at, nil
}

// Save writes a value with its time, which may be zero.
func (s State[T]) Save(ctx context.Context, value T, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode the state of lease %s: %w", s.Name, err)
	}
	of := s.Client.Leases(s.Namespace)
	lease, err := of.Get(ctx, s.Name, metav1.GetOptions{})
	isNew := apierrors.IsNotFound(err)
	if isNew {
		lease = &leases.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: map[string]string{"app.kubernetes.io/name": "quaymaster"}}}
	} else if err != nil {
		return err
	}
	lease.Spec.HolderIdentity = &s.Holder
	if !at.IsZero() {
		renewed := metav1.NewMicroTime(at)
		lease.Spec.RenewTime = &renewed
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[s.Annotation] = string(text)
	if isNew {
		_, err = of.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = of.Update(ctx, lease, metav1.UpdateOptions{})
	}
	return err
}
