package background

import (
	"context"
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/generating/record"
)

// The bounds.
const (
	// workers is how many triggers are worked on at once; the client's own rate limit
	// is what bounds the load.
	workers = 4
	// firstPause and longestPause are the time until what failed is tried again: it
	// doubles from one to the other.
	firstPause   = time.Second
	longestPause = 5 * time.Minute
	// maxHeld is what the content of triggers that wait takes in memory, in bytes; the others
	// are read again.
	maxHeld = 16 << 20
	// maxTargets bounds what one alteration changes because of one trigger.
	maxTargets = 5000
	// maxDepth bounds how many generated objects may lead to one another: a rule whose
	// objects are its own triggers would never end.
	maxDepth = 5
	// maxWrites is how often one object is written in writesWindow: two rules, or a
	// rule and another controller, that want it otherwise would go on for ever.
	maxWrites    = 10
	writesWindow = time.Minute
	// maxCounted bounds the objects whose writes are counted.
	maxCounted = 10_000
	// maxWatches bounds the kinds and namespaces that are watched: each costs a
	// connection's stream.
	maxWatches = 200
	// reviewInterval is how often kinds that were not served are looked for again.
	reviewInterval = time.Minute
	// saveInterval is how often progress is saved; slack is by how much the saved time
	// is too early, for clocks that differ.
	saveInterval = 30 * time.Second
	slack        = 30 * time.Second
)

// Policies are the policies in force.
type Policies interface {
	// Policies returns the current ones; nil while they are not known.
	Policies() *policy.Set
	// Changed returns a channel that is closed at the next change, of policies or of
	// what the API server serves. It is asked for before Policies.
	Changed() <-chan struct{}
	// Gone reports whether a policy, by its ID, is really not there any more; an error
	// means that nobody can tell. It is asked before anything is deleted because of
	// that.
	Gone(ctx context.Context, id string) (bool, error)
}

// Namespaces knows the labels of namespaces.
type Namespaces interface {
	Labels(ctx context.Context, name string) (map[string]string, error)
}

// Images finds the images of objects, for rules that read them.
type Images interface {
	Finder(object map[string]any) policy.Finder
}

// Memory keeps what cannot be derived: how far the one who led before has come.
type Memory interface {
	// Load returns what was saved last; the zero Progress if nothing was.
	Load(ctx context.Context) (Progress, error)
	Save(ctx context.Context, p Progress) error
}

// Progress is how far the work has come.
type Progress struct {
	// Until: everything that triggers before that time called for has been done.
	Until time.Time
	// Kinds are those of which there may be objects because of a rule, also of one
	// that is gone.
	Kinds []policy.ObjectKind
}

// Action is what was done to an object.
type Action string

// The actions.
const (
	Created Action = "created"
	Updated Action = "updated"
	Deleted Action = "deleted"
	Altered Action = "altered"
)

// Work is something that was done, or could not be.
type Work struct {
	// Trigger is because of which; Policy is the policy's ID and Rule the rule's name.
	Trigger      record.Trigger
	Policy, Rule string
	// Action is what was done; empty for what was not. Object is what it was about,
	// empty where that is not known: kind namespace/name.
	Action Action
	Object string
	// Err is why it was not done, nil otherwise; Final says that it is not tried again.
	Err   error
	Final bool
}

// Observer is told of what is done, from several goroutines; it must return quickly.
type Observer interface {
	// Worked: an object was written, or could not be.
	Worked(w Work)
	// Failed: something else does not work, and is tried again.
	Failed(err error)
}

// Options are what a Controller needs; all but Images and Excluded is required.
type Options struct {
	Cluster    Cluster
	Policies   Policies
	Namespaces Namespaces
	Images     Images
	Records    *record.Keeper
	Memory     Memory
	Observer   Observer
	// Excluded are namespaces that are left alone, with the triggers in them.
	Excluded []string
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

func (o Options) check() error {
	if o.Cluster == nil || o.Policies == nil || o.Namespaces == nil || o.Records == nil || o.Memory == nil || o.Observer == nil {
		return errors.New("background: Cluster, Policies, Namespaces, Records, Memory and Observer are required")
	}
	return nil
}
