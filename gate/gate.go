package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

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

// Remembered returns, by key, the cached facts of this process that a peer may receive.
// Facts that are not cached, or exceed the size limit of a fact, are absent. Keys are
// those that a Gate passes to its Peers; at most 64 are looked up.
func (g *Gate) Remembered(keys []string) map[string][]byte { return g.memory.claims.Shared(keys) }

// Snapshot returns the stale cache, the newest entries first, in at most parts parts of at
// most room bytes each (at least 1 MiB and some); the rest is left out. Without WithStale
// it is empty. It holds no secret and no "none found".
func (g *Gate) Snapshot(room, parts int) ([][]byte, error) {
	return g.memory.claims.Snapshot(room, parts)
}

// RestoreTrusted restores a part of a snapshot and returns the number of its valid
// entries. The caller must have authenticated the part, as by a MAC: a gate with the same
// policies of trust must have written it. Newer entries of this process are not replaced,
// and no entry outlives its original lifetime.
func (g *Gate) RestoreTrusted(raw []byte) (entries int, err error) {
	return g.memory.claims.RestoreTrusted(raw)
}
