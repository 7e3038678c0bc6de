package replicas

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/cache/redis"
	"github.com/quaymaster/quaymaster/gate"
)

// SharedConfig describes the shared cache of replicas. Its keys are set by NewSharedCache.
type SharedConfig struct {
	redis.Config
	Prefix  string        // empty means the default
	Timeout time.Duration // zero means the default
	Metrics SharedMetrics
}

// SharedMetrics counts the events of entries.
type SharedMetrics interface {
	SharedMemory(event string, entries int)
}

// NewSharedCache makes the shared cache of replicas, which must be closed. key is the replicas'
// own.
func NewSharedCache(c SharedConfig, key []byte) (*redis.Store, error) {
	// Not the replicas' key itself, because derived values are visible elsewhere.
	own, err := hkdf.Key(sha256.New, key, nil, "quaymaster shared memory", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("sharedMemory: %w", err)
	}
	c.Keys = func() ([]byte, [][]byte) { return own, nil }
	options := []redis.Option{redis.WithObserver(sharedObserver{c.Metrics})}
	if c.Prefix != "" {
		options = append(options, redis.WithPrefix(c.Prefix))
	}
	if c.Timeout != 0 {
		options = append(options, redis.WithTimeout(c.Timeout))
	}
	return redis.New(c.Config, options...)
}

// sharedObserver implements redis.Observer.
type sharedObserver struct{ to SharedMetrics }

// Requested implements redis.Observer, as do the methods below.
func (s sharedObserver) Requested(asked, known int) {
	s.to.SharedMemory("hit", known)
	s.to.SharedMemory("miss", asked-known)
}
func (s sharedObserver) Rejected(redis.Reason) { s.to.SharedMemory("rejected", 1) }
func (s sharedObserver) Kept(n int)            { s.to.SharedMemory("kept", n) }
func (s sharedObserver) Dropped(n int)         { s.to.SharedMemory("dropped", n) }
func (s sharedObserver) Failed(redis.Op)       { s.to.SharedMemory("failed", 1) }

// Local reads the cache of another gate of this process; it implements claims.Peers.
type Local struct{ Gate *gate.Gate }

// Get implements claims.Peers.
func (l Local) Get(_ context.Context, keys []string) map[string][]byte {
	return l.Gate.Remembered(keys)
}
