package publish

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/report"
)

// The errors of a Store that are told apart, by errors.Is. Any other is tried again.
var (
	// ErrNotFound: there is no such report, or not the namespace that it would be in.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the report has changed since it was read, or is there already.
	ErrConflict = errors.New("changed meanwhile")
	// ErrNotServed: the API server does not know reports of this API.
	ErrNotServed = errors.New("the API server serves no such kind")
	// ErrRejected: trying again would not help.
	ErrRejected = errors.New("rejected")
)

// Store is where the reports of one API are kept. Reports are JSON objects; those of
// an empty namespace are the cluster's. Implementations bound the time of each call
// and the calls in a second.
type Store interface {
	// Get returns a report; ErrNotFound, ErrNotServed.
	Get(ctx context.Context, namespace, name string) ([]byte, error)
	// Put creates a report, or updates one that has a resourceVersion, and returns it
	// as it is then; ErrConflict, ErrNotFound, ErrNotServed, ErrRejected.
	Put(ctx context.Context, text []byte) ([]byte, error)
	// Delete deletes a report if it is still of that version; ErrConflict, ErrNotFound.
	Delete(ctx context.Context, namespace, name, version string) error
}

// Workloads says for which workload an object runs.
type Workloads interface {
	// Workload returns the controller of an object, or the one behind it; nil for an
	// object that runs for none. An error means that nobody could say.
	Workload(ctx context.Context, of report.Resource) (*report.Owner, error)
}
