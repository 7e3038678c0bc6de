package gate

import (
	"context"
	"time"
)

// Peers are the other replicas, which may have proved a moment ago what is asked
// now. Whoever implements it proves that the answers are theirs (a MAC under
// the replicas' key), and bounds the time.
type Peers interface {
	// Recall asks for facts by their keys; what nobody knows is absent from the
	// answer. It never fails: a peer that does not answer knows nothing.
	Recall(ctx context.Context, keys []string) map[string][]byte
}

// maxAsked bounds how many facts are asked for, or handed out, at once. A
// reference with more questions asks its registry for the rest.
const maxAsked = 64

// WithPeers asks other replicas for facts that are not remembered, before the
// registry is asked for evidence. Never for "none found", and never for tags: who
// says what is not there, or where a tag points, is the registry alone.
func WithPeers(peers Peers) Option {
	return func(o *options) error {
		o.peers = peers
		return nil
	}
}

// Remembered returns, by key, the facts of this process that a peer may know:
// what is not remembered, or is larger than a fact may be, is absent. Keys are
// those that a Gate hands to its Peers; more than 64 are not looked at.
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

// askPeers answers from the memory of peers what it can, and returns the rest.
func (w *work) askPeers(ctx context.Context, missing []*inquiry) []*inquiry {
	peers := w.gate.options.peers
	if peers == nil {
		return missing
	}
	return w.askOthers(missing, LayerPeers, decodeShared, func(keys []string) map[string][]byte {
		return w.gate.memory.askPeers(ctx, peers, keys)
	})
}

// askOthers answers inquiries by what others proved. What they say goes through
// the own memory, so that it is believed no longer than what is proved here.
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

// mayAdopt reports whether an inquiry may be answered by what others remember.
func (w *work) mayAdopt(in *inquiry) bool {
	return !w.anew && !in.place.isLater && in.authority.MaxAge >= 0
}

// adopt takes over what others know about an inquiry, unless more recent facts are known
// here, which may be used where nobody answers.
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
