package scan

import (
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
}

// String returns resource.version.group.
func (k Kind) String() string {
	return strings.TrimSuffix(k.Resource+"."+k.Version+"."+k.Group, ".")
}

// Page is a part of a list.
type Page struct {
	Objects []workload.Object
	// Continue is where the next begins; empty at the end of the list.
	Continue string
	// Version is the version of the whole list, from which on a watch tells what is not in
	// it; empty where nobody says.
	Version string
	// Remaining is how many objects are beyond, as far as the API server says.
	Remaining int64
	// Unreadable are objects that could not be parsed.
	Unreadable []error
}

// Cluster says what is there.
type Cluster interface {
	// Kinds returns the kinds that can be listed, the preferred version of each first.
	Kinds(ctx context.Context) ([]Kind, error)
	// List returns up to so many objects of a kind, in all namespaces, from where a
	// page before ended; empty means the beginning. A list that went on for too long is
	// an *ExpiredError, and one that is not allowed an ErrRefused.
	List(ctx context.Context, kind Kind, from string, most int) (Page, error)
}

// ErrRefused says that what is asked for may not be seen, or is not served any more.
var ErrRefused = errors.New("the list is refused")

// ExpiredError says that a list went on for too long.
type ExpiredError struct {
	// Next is where it may go on, among newer objects; empty where nobody knows.
	Next string
	Err  error
}

// Error implements error.
func (e *ExpiredError) Error() string { return "the list went on for too long: " + e.Err.Error() }

// Unwrap returns the API server's own error.
func (e *ExpiredError) Unwrap() error { return e.Err }

// ErrUnknown says that nobody knows which labels a namespace has, and nobody was to.
var ErrUnknown = errors.New("nobody knows")

// Namespaces knows the labels of namespaces.
type Namespaces interface {
	// Labels may be ErrUnknown, of which nobody is told.
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Policies are what is decided by, as it changes.
type Policies interface {
	// Changed returns a channel that is closed when policies change.
	Changed() <-chan struct{}
}

// Forgetter is told what a round did not find any more.
type Forgetter interface {
	// Passed is called when all objects of a kind were listed, from the first page to
	// the last: results of the kind about others than these, from before the pass
	// began, speak of objects that are gone.
	Passed(ctx context.Context, p Pass)
}

// Follower finds what changes after it was listed, beside the rounds, which tell it what
// they list. Of a kind that it could not follow, rounds list everything again.
type Follower interface {
	// Kinds tells which kinds a round looks at, or could have: all others are left alone.
	Kinds(kinds []Kind)
	// Listed tells that all objects of a kind are looked at, as a list of a version has
	// them: what is newer is the Follower's to find.
	Listed(kind Kind, version string)
	// Refused tells that a kind cannot be listed; it is left alone until it can be.
	Refused(kind Kind)
	// Behind returns the kinds of which something may have been missed since they were
	// listed, and a channel that is closed when there are others.
	Behind() ([]Kind, <-chan struct{})
}

// unfollowed is where nothing is followed.
type unfollowed struct{}

func (unfollowed) Kinds([]Kind)                      {}
func (unfollowed) Listed(Kind, string)               {}
func (unfollowed) Refused(Kind)                      {}
func (unfollowed) Behind() ([]Kind, <-chan struct{}) { return nil, nil }

// Observer is told how rounds go.
type Observer interface {
	// Began and Ended frame a round.
	Began(p Position)
	Ended(s Summary, err error)
	// Looked tells of each page.
	Looked(kind Kind, objects int, remaining int64)
	// Refused tells of a kind that could not be listed, and Failed of what is tried again.
	Refused(kind Kind, err error)
	Failed(err error)
}

// LeftOut is a policy that a scan does not ask.
type LeftOut struct {
	Policy *policy.Policy
	Why    string
}

// Keeper is a sink that can be waited for: what a round finds out comes faster than
// reports are written.
type Keeper interface {
	// Put returns when there is room for it, or with ctx and an error.
	Put(ctx context.Context, d report.Decided) error
}

// mayMean reports whether a target may mean a kind as it is there: neither a part of it,
// nor one that goes.
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
