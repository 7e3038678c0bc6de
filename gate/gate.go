package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

// Session is a view of the registries with one set of credentials. It counts its requests.
type Session interface {
	evaluate.Registry
	Cost() Cost
}

// Access selects the credentials with which an image is read.
type Access struct {
	// Credentials are those that the policy names.
	policy.Credentials
	// Workload holds the pull credentials that the object names.
	Workload workload.Identity
}

// Registries opens sessions.
type Registries interface {
	// Open returns a session for one repository. An error means that the credentials could not
	// be obtained, so the image could not be verified.
	Open(ctx context.Context, access Access, repository image.Repository) (Session, error)
}

// Snapshot is the state by which one request is evaluated.
type Snapshot struct {
	Policies *set.Set
	Prover   Prover
	// Mirrors may be nil.
	Mirrors *mirror.Set
}

// State gives the current snapshot. It is asked once per request.
type State interface {
	Snapshot(ctx context.Context) (Snapshot, error)
}

// Fixed is a State that never changes, for the command line and for tests.
type Fixed Snapshot

// Snapshot implements State.
func (f Fixed) Snapshot(context.Context) (Snapshot, error) { return Snapshot(f), nil }

// Config holds the required dependencies of a Gate.
type Config struct {
	Registries Registries
	State      State
}

// Gate is the shared engine. It is safe for concurrent use.
type Gate struct {
	registries Registries
	state      State
	options    options
	memory     *memory
}

type options struct {
	images  int            // images evaluated at once, per request
	timeout time.Duration  // for one request
	age     time.Duration  // greatest age of a fact
	noneAge time.Duration  // age of "none found"
	tagAge  time.Duration  // age of a tag's digest
	stale   *time.Duration // greatest age of both where a registry does not answer; nil: none is kept
	now     func() time.Time

	observer Observer     // nil: no notifications
	peers    claims.Peers // nil: no peer requests
	store    claims.Store // nil: there is none
	chooser  *redirect.Chooser
	secrets  PullSecrets // nil: no Secret is added to pods
}

// Option changes a default of a Gate.
type Option func(*options) error

// WithConcurrency bounds how many images of a request are evaluated at once; 16
// unless set.
func WithConcurrency(images int) Option {
	return func(o *options) error {
		if images < 1 {
			return fmt.Errorf("concurrency %d: want at least 1", images)
		}
		o.images = images
		return nil
	}
}

// WithTimeout bounds a request as a whole; 30 s unless set. Images not verified by then
// are errors.
func WithTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("timeout %s: want more than nothing", d)
		}
		o.timeout = d
		return nil
	}
}

// Ages sets how long the gate caches results; zero fields keep their defaults.
type Ages struct {
	// Fact is the greatest age of a verified claim: 1 h.
	Fact time.Duration
	// None is the age of "no evidence found": 10 s.
	None time.Duration
	// Tag is the age of the digest behind a tag: 10 s.
	Tag time.Duration
}

// WithAges changes how long the gate caches results.
func WithAges(ages Ages) Option {
	return func(o *options) error {
		for _, set := range []struct {
			to   *time.Duration
			from time.Duration
		}{{&o.age, ages.Fact}, {&o.noneAge, ages.None}, {&o.tagAge, ages.Tag}} {
			if set.from < 0 {
				return fmt.Errorf("age %s: want more than nothing", set.from)
			}
			if set.from > 0 {
				*set.to = set.from
			}
		}
		return nil
	}
}

// WithClock replaces the clock: for tests, and to evaluate as of a later time.
func WithClock(now func() time.Time) Option {
	return func(o *options) error {
		o.now = now
		return nil
	}
}

// New makes a Gate.
func New(config Config, with ...Option) (*Gate, error) {
	if config.Registries == nil || config.State == nil {
		return nil, errors.New("gate: want registries and a state")
	}
	o := options{
		images: 16, timeout: 30 * time.Second,
		age: time.Hour, noneAge: 10 * time.Second, tagAge: 10 * time.Second,
		now: time.Now,
	}
	for _, option := range with {
		if err := option(&o); err != nil {
			return nil, fmt.Errorf("gate: %w", err)
		}
	}
	memory, err := newMemory(o)
	if err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	return &Gate{registries: config.Registries, state: config.State, options: o, memory: memory}, nil
}
