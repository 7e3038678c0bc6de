package claims

import (
	"context"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
)

// maxAsked bounds how many facts are asked for, or handed out, at once. A
// reference with more questions asks its registry for the rest.
const maxAsked = 64

// Adopted is the answer to a query by claims of other replicas, as with Cache.Lookup.
type Adopted struct {
	Answer  policy.Answer
	Old, OK bool
}

// Shared returns, by key, the cached facts of this process that a peer may receive. Facts
// that are not cached, or exceed the size limit of a fact, are absent. At most 64 are looked
// up.
func (c *Cache) Shared(keys []string) map[string][]byte {
	known := map[string][]byte{}
	for _, text := range keys[:min(len(keys), maxAsked)] {
		key, err := ParseKey(text)
		if err != nil {
			continue
		}
		entry, ok := c.facts.Get(key)
		if !ok || entry.brief {
			continue
		}
		if encoded, err := encode(key, entry, c.config.Now()); err == nil {
			known[text] = encoded
		}
	}
	return known
}

// AskStore answers queries from the shared store, one answer for each; nil where there is
// nothing to ask.
func (c *Cache) AskStore(ctx context.Context, queries []Query) []Adopted {
	if c.config.Store == nil {
		return nil
	}
	return c.askOthers(ctx, queries, others{layer: LayerStore, name: "store\n", decode: decodeKept, get: c.config.Store.Get})
}

// AskPeers answers queries from peers, as AskStore does.
func (c *Cache) AskPeers(ctx context.Context, queries []Query) []Adopted {
	if c.config.Peers == nil {
		return nil
	}
	return c.askOthers(ctx, queries, others{layer: LayerPeers, decode: decode, get: c.config.Peers.Get})
}

// others are the replicas, or their store.
type others struct {
	layer  Layer
	name   string // separates the calls that concurrent requests share
	decode func(raw []byte, key Key, now time.Time) (Entry, error)
	get    func(ctx context.Context, keys []string) map[string][]byte
}

// askOthers answers queries with facts that other replicas verified. The facts go
// through this replica's cache, so they are trusted no longer than facts verified here.
func (c *Cache) askOthers(ctx context.Context, queries []Query, others others) []Adopted {
	var keys []string
	for _, q := range queries {
		if q.mayAdopt() && len(keys) < maxAsked {
			keys = append(keys, q.String())
		}
	}
	if len(keys) == 0 {
		return nil
	}
	known := c.backfill(ctx, others, keys)
	answers := make([]Adopted, len(queries))
	for i, q := range queries {
		if raw, ok := known[q.String()]; ok && q.mayAdopt() {
			if found, err := others.decode(raw, q.Key, c.config.Now()); err == nil {
				answers[i] = c.adopt(q, found)
			}
		}
		c.config.asked(others.layer, answers[i].OK)
	}
	return answers
}

// backfill asks other replicas for keys. Concurrent requests for the same keys share one call.
func (c *Cache) backfill(ctx context.Context, others others, keys []string) map[string][]byte {
	known, err := c.backfills.Do(ctx, others.name+strings.Join(keys, "\n"), func(ctx context.Context) (map[string][]byte, error) {
		return others.get(ctx, keys), nil
	})
	if err != nil { // one that does not answer counts as a miss
		return nil
	}
	return known
}

// mayAdopt reports whether a query may be answered by other replicas' facts.
func (q Query) mayAdopt() bool { return !q.Bypass && !q.Fallback && q.MaxAge >= 0 }

// adopt takes over other replicas' facts about a query, unless more recent facts are
// cached here, which may serve as stale entries.
func (c *Cache) adopt(q Query, found Entry) Adopted {
	if known, ok := c.facts.Get(q.Key); !ok || known.At.Before(found.At) {
		c.keepFacts(q, found)
	}
	answer, old, ok := c.Facts(q.Key)
	return Adopted{Answer: answer, Old: old, OK: ok}
}
