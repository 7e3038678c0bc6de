package claims

import (
	"context"
	"time"
)

// Bounds of the cache. An answer without statements costs about a kilobyte, so 64 MiB hold
// some 60,000 of them: more images than a large cluster runs.
const (
	factBytes   = 64 << 20
	noneBytes   = 8 << 20
	maxTags     = 50_000
	hashBytes   = 16 << 20 // with the authorities, which an expression may make for each request
	answerBytes = 1 << 10
	// maxGone bounds the negative entries: queries that have no evidence any more.
	maxGone = 50_000
	// maxSilent bounds the locations recorded as unresponsive.
	maxSilent = 10_000
	// silence is how long an unresponsive location is skipped by requests that have a stale
	// entry. A registry outage then costs one wait, not one for each pod.
	silence = 10 * time.Second
)

// Layer is a cache that is consulted before the registry.
type Layer string

// The layers.
const (
	LayerFacts Layer = "facts" // verified claims of this process
	LayerNone  Layer = "none"  // "none found"
	LayerTags  Layer = "tags"  // digests behind tags
	LayerPeers Layer = "peers" // verified claims of other replicas
	LayerStore Layer = "store" // verified claims in the store that replicas share
)

// Observer receives the hits and misses.
type Observer interface {
	// Asked reports a hit or a miss of a layer.
	Asked(layer Layer, known bool)
}

// Config configures a Cache.
type Config struct {
	// Fact is the greatest age of a verified claim, None of "none found", and Tag of the
	// digest behind a tag.
	Fact, None, Tag time.Duration
	// Stale is how long verified claims and digests are kept for use while registries do not
	// answer; zero keeps none.
	Stale time.Duration
	// Timeout bounds a lookup that several requests share.
	Timeout time.Duration
	// Now is the clock.
	Now      func() time.Time
	Observer Observer // nil: no notifications
	Peers    Peers    // nil: no peer requests
	Store    Store    // nil: no shared store
}

// asked notifies the observer.
func (c *Config) asked(layer Layer, known bool) {
	if c.Observer != nil {
		c.Observer.Asked(layer, known)
	}
}

// Peers are the other replicas, which may have verified the requested fact recently. An
// implementation authenticates the answers (a MAC under the replicas' key), and bounds the
// time.
type Peers interface {
	// Get requests facts by their keys; missing facts are absent from the answer. It never
	// fails: a peer that does not answer counts as a miss.
	Get(ctx context.Context, keys []string) map[string][]byte
}

// Store is a cache that replicas share. An implementation authenticates that a replica
// stored the returned value under that very key, and bounds the time.
type Store interface {
	Peers
	// Keep keeps a value for at most ttl. It does not wait.
	Keep(key string, value []byte, ttl time.Duration)
}
