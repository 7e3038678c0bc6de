package background

import (
	"context"
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/source"
)

// The bounds.
const (
	// workers is the number of triggers that are processed in parallel. The client's rate limit
	// bounds the load.
	workers = 4
	// firstPause and longestPause bound the pause before a retry, which doubles.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// maxTargets bounds the targets of one alteration for one trigger.
	maxTargets = 5000
	// maxDepth bounds chains of generated objects: a rule that generates its own triggers would
	// never end.
	maxDepth = 5
	// maxWatches bounds the watched kinds and namespaces: each needs a stream.
	maxWatches = 200
	// reviewInterval is the interval of checks for kinds that were not served.
	reviewInterval = time.Minute
	// saveInterval is the interval at which progress is saved. slack is subtracted from the saved
	// time to compensate for clock skew.
	saveInterval = 30 * time.Second
	slack        = 30 * time.Second
)

// Policies provides the policies in force.
type Policies interface {
	// Policies returns the current policies; nil while they are not loaded.
	Policies() *set.Set
	// Changed returns a channel that is closed at the next change, of policies or of the served
	// kinds. Call it before Policies.
	Changed() <-chan struct{}
	// Gone reports whether the policy with an ID was deleted; an error means that this is
	// unknown. It is called before objects are deleted with their policy.
	Gone(ctx context.Context, id string) (bool, error)
}

// Namespaces looks up the labels of namespaces.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Sources reads the objects that rules copy. Implementations bound the duration of each call but
// WatchSource.
type Sources interface {
	source.Objects
	// WatchSource is Watch of a Cluster for one source.
	WatchSource(ctx context.Context, of source.Ref, to Sink)
}

// Images finds the images of objects, for rules that read them.
type Images interface {
	Finder(object map[string]any) policy.Finder
}

// Memory stores the state that cannot be derived: the progress of the previous leader.
type Memory interface {
	// Load returns the last saved Progress; the zero value if there is none.
	Load(ctx context.Context) (Progress, error)
	Save(ctx context.Context, p Progress) error
}

// Progress is the progress of the work.
type Progress struct {
	// Until: all work for triggers before that time is done.
	Until time.Time
	// Kinds are the kinds of objects that rules may have generated, including deleted rules.
	Kinds []policy.ObjectKind
	// Positions are those of the watches with rules for deletions.
	Positions []Position
}

// Action is an operation on an object.
type Action string

// The actions.
const (
	Created Action = "created"
	Updated Action = "updated"
	Deleted Action = "deleted"
	Altered Action = "altered"
)

// Work is completed or failed work.
type Work struct {
	// Trigger is the trigger of the work. Policy is the policy's ID and Rule the rule's name.
	Trigger      record.Trigger
	Policy, Rule string
	// Action is the completed operation; empty for failed work. Object is the object as kind
	// namespace/name; empty if unknown.
	Action Action
	Object string
	// Err is the error; nil for completed work. Final means that there is no retry.
	Err   error
	Final bool
}

// Observer receives events of a Controller, concurrently; it must return quickly.
type Observer interface {
	// Worked: an object was written, or the write failed.
	Worked(w Work)
	// Failed: another error occurred, and the operation is retried.
	Failed(err error)
}

// Reports receives the results of rules for reports about the objects of the cluster, concurrently: of
// generate rules about their triggers, and of mutate-existing rules about their targets and triggers. It
// may wait until ctx ends.
type Reports interface {
	Report(ctx context.Context, about *policy.Subject, results []policy.RuleResult)
}

// Options are the dependencies of a Controller; all but Images, Reports and Excluded are required.
type Options struct {
	Cluster    Cluster
	Sources    Sources
	Policies   Policies
	Namespaces Namespaces
	Images     Images
	Records    *record.Keeper
	Memory     Memory
	Observer   Observer
	Reports    Reports
	// Excluded are excluded namespaces: triggers in them are ignored.
	Excluded []string
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

func (o Options) check() error {
	if o.Cluster == nil || o.Sources == nil || o.Policies == nil || o.Namespaces == nil || o.Records == nil || o.Memory == nil || o.Observer == nil {
		return errors.New("background: Cluster, Sources, Policies, Namespaces, Records, Memory and Observer are required")
	}
	return nil
}
