package cluster

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quaymaster/quaymaster/image"
)

// The three kinds of a failed lookup. Every error for an object is one of them, by errors.Is.
var (
	// ErrNotFound means: the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrForbidden means: the gateway may not read it.
	ErrForbidden = errors.New("forbidden")
	// ErrUnavailable means: the lookup failed.
	ErrUnavailable = errors.New("could not be looked up")
)

// Error is a failed lookup of an object.
type Error struct {
	// Kind is as in "secret"; Namespace is empty for cluster-scoped objects.
	Kind, Namespace, Name string
	// Right is the missing permission, as in "list on pods"; empty means get on the kind.
	Right string
	// Reason is ErrNotFound, ErrForbidden or ErrUnavailable.
	Reason error
	// Cause is the error of the API server or the network; may be nil.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	name := e.Name
	if e.Namespace != "" {
		name = e.Namespace + "/" + e.Name
	}
	switch {
	case errors.Is(e.Reason, ErrNotFound):
		return fmt.Sprintf("%s %s is not found", e.Kind, name)
	case errors.Is(e.Reason, ErrForbidden) && e.Right != "":
		return fmt.Sprintf("%s %s may not be read by the gateway; grant its service account %s", e.Kind, name, e.Right)
	case errors.Is(e.Reason, ErrForbidden):
		return fmt.Sprintf("%s %s may not be read by the gateway; grant its service account get on %ss there", e.Kind, name, e.Kind)
	case e.Cause == nil:
		return fmt.Sprintf("%s %s could not be looked up", e.Kind, name)
	}
	return fmt.Sprintf("%s %s could not be looked up: %v", e.Kind, name, e.Cause)
}

// Unwrap returns the reason and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Cause}
}

// FailureKind returns the reason as a kind of package image, so that consumers of credentials or
// keys need not import this package.
func (e *Error) FailureKind() image.Kind {
	switch {
	case errors.Is(e.Reason, ErrNotFound):
		return image.NotFound
	case errors.Is(e.Reason, ErrForbidden):
		return image.Refused
	}
	return image.Unavailable
}

// classify converts an error of client-go to an *Error.
func classify(kind, namespace, name string, err error) error {
	if err == nil {
		return nil
	}
	reason := ErrUnavailable
	switch {
	case apierrors.IsNotFound(err):
		reason = ErrNotFound
	case apierrors.IsForbidden(err):
		reason = ErrForbidden
	}
	return &Error{Kind: kind, Namespace: namespace, Name: name, Reason: reason, Cause: err}
}
