package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Store is a cache that replicas share. An implementation authenticates that a replica
// stored the returned value under that very key, and bounds the time.
type Store interface {
	// Recall returns the stored values by key; missing keys are absent. It never fails: a
	// store that does not answer counts as a miss.
	Recall(ctx context.Context, keys []string) map[string][]byte
	// Keep keeps a value for at most ttl. It does not wait.
	Keep(key string, value []byte, ttl time.Duration)
}

// WithStore asks a shared store for facts that are not cached, before peers and the
// registry are asked, and stores the facts verified here. It never holds "none found" or
// tags.
func WithStore(store Store) Option {
	return func(o *options) error {
		if store == nil {
			return errors.New("store: want one")
		}
		o.store = store
		return nil
	}
}

// maxKept bounds one entry of a store in bytes.
const maxKept = maxShared + 64

// kept is an entry of a store: an answer in the peers' format, and the time of its
// verification. The replica that sealed it may have a different clock; the store's own
// expiry bounds the entry in any case.
type kept struct {
	At     int64          `json:"at"` // nanoseconds since 1970
	Answer jsontext.Value `json:"answer"`
}

// share stores the facts verified here, for as long as they are cached here.
func (m *memory) share(key factKey, found proved, age time.Duration) {
	if m.options.store == nil || age <= 0 {
		return
	}
	answer, err := encodeShared(key, found, found.at)
	if err != nil {
		return
	}
	if entry, err := json.Marshal(kept{At: found.at.UnixNano(), Answer: answer}); err == nil {
		m.options.store.Keep(key.String(), entry, age)
	}
}

// decodeKept reads an entry of the store for a key.
func decodeKept(raw []byte, key factKey, now time.Time) (proved, error) {
	if len(raw) > maxKept {
		return proved{}, fmt.Errorf("an entry of the store is larger than %d bytes", maxKept)
	}
	var entry kept
	if err := json.Unmarshal(raw, &entry, json.RejectUnknownMembers(true)); err != nil {
		return proved{}, fmt.Errorf("an entry of the store: %w", err)
	}
	found, err := decodeShared(entry.Answer, key, now)
	if err != nil {
		return proved{}, err
	}
	if at := time.Unix(0, entry.At); at.Before(found.at) {
		found.at = at
	}
	return found, nil
}

// askStore answers as many inquiries as possible from the store, and returns the rest.
func (w *work) askStore(ctx context.Context, missing []*inquiry) []*inquiry {
	store := w.gate.options.store
	if store == nil {
		return missing
	}
	return w.askOthers(missing, LayerStore, decodeKept, func(keys []string) map[string][]byte {
		return w.gate.memory.askStore(ctx, store, keys)
	})
}
