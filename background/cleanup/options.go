package cleanup

import (
	"context"
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/set"
)

// The bounds.
const (
	// MaxLate is the longest time after its schedule at which a run begins or continues.
	MaxLate = time.Hour
	// maxRun bounds a run: an endless list or a slow look-up must not delay the others for longer.
	maxRun = time.Hour
	// workers is the number of runs at a time. The client's rate limit bounds the load.
	workers = 3
	// reserved is the number of deletions that are recorded in advance. After a crash so many may
	// count that were not made.
	reserved = 10
	// maxTries bounds the attempts for an object that changes while it is decided.
	maxTries = 3
	// maxMessages bounds the messages about objects in the result of a run.
	maxMessages = 5
	// maxPolicies bounds the rules with a schedule: the record of all runs is one object of the API.
	// Cluster-wide policies come first, so that authors in a namespace cannot displace them.
	maxPolicies = 1500
	// maxTimes bounds the times of a schedule within MaxLate: one each second.
	maxTimes = 3600
	// maxKinds bounds the kinds of one rule, each of which is listed.
	maxKinds = 500
	// sweepInterval is the interval of looking for objects whose lifetime has ended.
	sweepInterval = time.Minute
	// permissionInterval is the interval at which permissions are checked without a change of policies.
	permissionInterval = time.Minute
	// longestWait bounds the wait for the next schedule: the wall clock may be set.
	longestWait = time.Minute
	// pause is the pause after an error.
	pause = 5 * time.Second
)

// Cluster is a client of the API server. Objects are decoded JSON. Implementations limit the rate of
// requests, and bound the duration of each.
type Cluster interface {
	// Served returns the kinds, each in one version, that a target may match.
	Served(ctx context.Context, target policy.Target) ([]background.Kind, error)
	// Get returns one object; background.ErrNotFound.
	Get(ctx context.Context, kind background.Kind, namespace, name string) (map[string]any, error)
	// Each calls do for each object, in pages, until it returns an error. An empty namespace means
	// all; query is a label selector.
	Each(ctx context.Context, kind background.Kind, namespace, query string, do func(object map[string]any) error) error
	// Delete deletes an object if its UID and resourceVersion are unchanged; background.ErrConflict,
	// background.ErrNotFound.
	Delete(ctx context.Context, kind background.Kind, object map[string]any, how policy.Propagation) error
}

// Access reports the permissions of this process.
type Access interface {
	// May reports whether it may make a request about all objects of a kind in a namespace; an empty
	// namespace means all of them. An error means that this is unknown.
	May(ctx context.Context, verb string, kind background.Kind, namespace string) (bool, error)
}

// Policies provides the policies in force.
type Policies interface {
	// Policies returns the current policies; nil while they are not loaded.
	Policies() *set.Set
	// Changed returns a channel that is closed at the next change. Call it before Policies.
	Changed() <-chan struct{}
}

// Namespaces looks up the labels of namespaces.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Images finds the images of objects, for rules that read them.
type Images interface {
	Finder(object map[string]any) policy.Finder
}

// Grants reads the grants of lifetimes.
type Grants interface {
	// ReadLifetime returns the user that set the label of an object. An error means that the
	// admission webhook did not grant the label's value.
	ReadLifetime(object map[string]any) (by string, err error)
}

// Options are the dependencies of a Controller. Fields are required unless marked as optional.
type Options struct {
	Cluster    Cluster
	Access     Access
	Policies   Policies
	Namespaces Namespaces
	Images     Images // optional
	Store      Store
	Observer   Observer
	// Protection is which objects are never deleted.
	Protection deletion.Protection
	// Limit is the number of deletions of one run; 0 means deletion.DefaultLimit.
	Limit int
	// Grants turns the lifetimes of objects on; nil: the label has no effect.
	Grants Grants
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

func (o *Options) check() error {
	if o.Cluster == nil || o.Access == nil || o.Policies == nil || o.Namespaces == nil || o.Store == nil || o.Observer == nil {
		return errors.New("cleanup: Cluster, Access, Policies, Namespaces, Store and Observer are required")
	}
	if o.Limit < 0 {
		return errors.New("cleanup: Limit must not be below 0")
	}
	if o.Limit == 0 {
		o.Limit = deletion.DefaultLimit
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}
