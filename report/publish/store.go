package publish

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/report"
)

// The errors of a Store that are handled separately, by errors.Is. Any other error is retried.
var (
	// ErrNotFound means: the report or its namespace does not exist.
	ErrNotFound = errors.New("not found")
	// ErrConflict means: the report has changed since it was read, or already exists.
	ErrConflict = errors.New("changed meanwhile")
	// ErrNotServed means: the API server does not serve reports of this API.
	ErrNotServed = errors.New("the API server serves no such kind")
	// ErrRejected means: a retry would fail, too.
	ErrRejected = errors.New("rejected")
)

// Store stores the reports of one API. Reports are JSON objects; an empty namespace means a
// cluster report. Implementations bound the duration and the rate of calls.
type Store interface {
	// Get returns a report; ErrNotFound, ErrNotServed.
	Get(ctx context.Context, namespace, name string) ([]byte, error)
	// Put creates a report, or updates one with a resourceVersion, and returns the stored object;
	// ErrConflict, ErrNotFound, ErrNotServed, ErrRejected.
	Put(ctx context.Context, text []byte) ([]byte, error)
	// Delete deletes a report if it still has that version; ErrConflict, ErrNotFound.
	Delete(ctx context.Context, namespace, name, version string) error
}

// Workloads looks up the workload of an object.
type Workloads interface {
	// Workload returns the root controller of an object; nil for an object without one. An error
	// means that the lookup failed.
	Workload(ctx context.Context, of report.Resource) (*report.Owner, error)
}
