package gate

import (
	"context"
	"time"
)

// Peers are the other replicas, which may have verified the requested fact recently. An
// implementation authenticates the answers (a MAC under the replicas' key), and bounds the
// time.
type Peers interface {
	// Recall requests facts by their keys; missing facts are absent from the answer. It never
	// fails: a peer that does not answer counts as a miss.
	Recall(ctx context.Context, keys []string) map[string][]byte
}

// maxAsked bounds how many facts are asked for, or handed out, at once. A
// reference with more questions asks its registry for the rest.
const maxAsked = 64

// WithPeers asks other replicas for facts that are not cached, before the registry is
// asked for evidence. Peers never answer for "none found" or for tags: only the registry
// can report absence or resolve a tag.
func WithPeers(peers Peers) Option {
	return func(o *options) error {
		o.peers = peers
		return nil
	}
}

// Remembered returns, by key, the cached facts of this process that a peer may receive.
// Facts that are not cached, or exceed the size limit of a fact, are absent. Keys are
// those that a Gate passes to its Peers; at most 64 are looked up.
func (g *Gate) Remembered(keys []string) map[string][]byte {
	known := map[string][]byte{}
	for _, key := range keys[:min(len(keys), maxAsked)] {
		fact, err := parseFactKey(key)
		if err != nil {
			continue
		}
		answer, ok := g.memory.facts.Get(fact)
		if !ok {
			continue
		}
		if encoded, err := encodeShared(fact, answer, g.options.now()); err == nil {
			known[key] = encoded
		}
	}
	return known
}

// askPeers answers as many inquiries as possible from peers, and returns the rest.
func (w *work) askPeers(ctx context.Context, missing []*inquiry) []*inquiry {
	peers := w.gate.options.peers
	if peers == nil {
		return missing
	}
	return w.askOthers(missing, LayerPeers, decodeShared, func(keys []string) map[string][]byte {
		return w.gate.memory.askPeers(ctx, peers, keys)
	})
}

// askOthers answers inquiries with facts that other replicas verified. The facts go
// through this replica's cache, so they are trusted no longer than facts verified here.
func (w *work) askOthers(
	missing []*inquiry, layer Layer, decode func([]byte, factKey, time.Time) (proved, error), ask func(keys []string) map[string][]byte,
) []*inquiry {
	var keys []string
	for _, in := range missing {
		if w.mayAdopt(in) && len(keys) < maxAsked {
			keys = append(keys, in.fact.String())
		}
	}
	if len(keys) == 0 {
		return missing
	}
	known := ask(keys)
	var rest []*inquiry
	for _, in := range missing {
		adopted := false
		if raw, ok := known[in.fact.String()]; ok && w.mayAdopt(in) {
			if found, err := decode(raw, in.fact, w.gate.options.now()); err == nil {
				adopted = w.adopt(in, found)
			}
		}
		w.gate.options.asked(layer, adopted)
		if !adopted {
			rest = append(rest, in)
		}
	}
	return rest
}

// mayAdopt reports whether an inquiry may be answered by other replicas' facts.
func (w *work) mayAdopt(in *inquiry) bool {
	return !w.anew && !in.place.isLater && in.authority.MaxAge >= 0
}

// adopt takes over other replicas' facts about an inquiry, unless more recent facts are
// cached here, which may serve as stale entries.
func (w *work) adopt(in *inquiry, found proved) bool {
	if known, ok := w.gate.memory.facts.Get(in.fact); !ok || known.at.Before(found.at) {
		w.gate.memory.keepFacts(in, found)
	}
	answer, old, ok := w.gate.memory.recallFacts(in.fact)
	if !ok {
		return false
	}
	if old {
		w.markOld(in.key)
	}
	w.record(in.key, answer)
	return true
}
