package gate

import (
	"errors"

	"github.com/quaymaster/quaymaster/gate/claims"
)

// WithPeers asks other replicas for facts that are not cached, before the registry is
// asked for evidence. Peers never answer for "none found" or for tags: only the registry
// can report absence or resolve a tag.
func WithPeers(peers claims.Peers) Option {
	return func(o *options) error {
		o.peers = peers
		return nil
	}
}

// WithStore asks a shared store for facts that are not cached, before peers and the
// registry are asked, and stores the facts verified here. It never holds "none found" or
// tags.
func WithStore(store claims.Store) Option {
	return func(o *options) error {
		if store == nil {
			return errors.New("store: want one")
		}
		o.store = store
		return nil
	}
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
