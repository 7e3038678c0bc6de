package scan

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

// Kind is a kind of objects in one version.
type Kind struct {
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Kind     string `json:"kind"`
	Resource string `json:"resource"`
	// Namespaced: its objects are in namespaces.
	Namespaced bool `json:"namespaced,omitempty"`
	// IsOfFiles: its objects are in no other version, and Resource may be unknown.
	IsOfFiles bool `json:"-"`
}

// String returns resource.version.group.
func (k Kind) String() string {
	return strings.TrimSuffix(cmp.Or(k.Resource, k.Kind)+"."+k.Version+"."+k.Group, ".")
}

// Page is a part of a list.
type Page struct {
	Objects []workload.Object
	// Continue is the continue token of the next page; empty at the end of the list.
	Continue string
	// Version is the resourceVersion of the whole list, from which a watch continues; empty if
	// unknown.
	Version string
	// Remaining is the number of further objects, as far as the API server reports it.
	Remaining int64
	// Unreadable are objects that could not be parsed.
	Unreadable []error
}

// Cluster lists the objects to scan.
type Cluster interface {
	// Kinds returns the kinds that can be listed, the preferred version of each first.
	Kinds(ctx context.Context) ([]Kind, error)
	// List returns up to so many objects of a kind, in all namespaces, from the continue token of
	// a page before; empty means the beginning. An expired list is an *ExpiredError, and one
	// without permission an ErrRefused.
	List(ctx context.Context, kind Kind, from string, most int) (Page, error)
}

// ErrRefused means: the list is not permitted, or the kind is no longer served.
var ErrRefused = errors.New("the list is refused")

// ExpiredError reports an expired list.
type ExpiredError struct {
	// Next is the continue token for the rest of the list with newer objects; empty where there
	// is none.
	Next string
	Err  error
}

// Error implements error.
func (e *ExpiredError) Error() string { return "the list went on for too long: " + e.Err.Error() }

// Unwrap returns the API server's own error.
func (e *ExpiredError) Unwrap() error { return e.Err }

// ErrUnknown means: the labels of a namespace are unknown, and this is not logged.
var ErrUnknown = errors.New("the labels of the namespace are unknown")

// Namespaces looks up the labels of namespaces.
type Namespaces interface {
	// Labels may be ErrUnknown, which is not logged.
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Policies are the current policies.
type Policies interface {
	// Changed returns a channel that is closed when policies change.
	Changed() <-chan struct{}
}

// PassReceiver receives the end of each pass, to remove results of deleted objects.
type PassReceiver interface {
	// Passed is called when all objects of a kind were listed, from the first page to the last.
	// Results of the kind for other objects, from before the pass began, belong to deleted
	// objects.
	Passed(ctx context.Context, p Pass)
}

// Follower evaluates changes after the list, in parallel with the rounds, which report their
// lists to it. Rounds list a kind again if the Follower may have missed changes.
type Follower interface {
	// Kinds sets the kinds of rounds; all others are ignored.
	Kinds(kinds []Kind)
	// Listed reports that a list of a version was evaluated: the Follower handles newer changes.
	Listed(kind Kind, version string)
	// Refused reports that a kind cannot be listed; it is ignored until it can be.
	Refused(kind Kind)
	// Behind returns the kinds with possibly missed changes since their list, and a channel that
	// is closed when there are others.
	Behind() ([]Kind, <-chan struct{})
}

// unfollowed is used without a Follower.
type unfollowed struct{}

func (unfollowed) Kinds([]Kind)                      {}
func (unfollowed) Listed(Kind, string)               {}
func (unfollowed) Refused(Kind)                      {}
func (unfollowed) Behind() ([]Kind, <-chan struct{}) { return nil, nil }

// Observer receives the progress of rounds.
type Observer interface {
	// Began and Ended are called at the start and the end of a round.
	Began(p Position)
	Ended(s Summary, err error)
	// Looked is called after each page.
	Looked(kind Kind, objects int, remaining int64)
	// Refused is called for a kind that cannot be listed, and Failed for a retried error.
	Refused(kind Kind, err error)
	Failed(err error)
}

// LeftOut is a policy that a scan does not evaluate.
type LeftOut struct {
	Policy *policy.Policy
	Why    string
}

// Keeper is a sink with backpressure: a round produces results faster than reports are written.
type Keeper interface {
	// Put returns when there is capacity, or with ctx and an error.
	Put(ctx context.Context, d report.Decided) error
}

// mayMean reports whether a target may match existing objects of a kind: not a subresource, and
// not only deletions.
func mayMean(t policy.Target) bool {
	if t.Subresource != "" && t.Subresource != "*" {
		return false
	}
	if len(t.Operations) == 0 {
		return true
	}
	for _, operation := range t.Operations {
		if operation == "CREATE" || operation == "UPDATE" || operation == "*" {
			return true
		}
	}
	return false
}
