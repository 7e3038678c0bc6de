package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Store is a memory that replicas share. Whoever implements it proves that what
// it returns was kept by a replica for that very key, and bounds the time.
type Store interface {
	// Recall returns what was kept, by key; what is not known is absent. It never
	// fails: a store that does not answer knows nothing.
	Recall(ctx context.Context, keys []string) map[string][]byte
	// Keep keeps a value for at most ttl. It does not wait.
	Keep(key string, value []byte, ttl time.Duration)
}

// WithStore asks a shared memory for facts that are not remembered, before other
// replicas and the registry are asked, and tells it what is proved here. Never
// "none found", and never tags.
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

// kept is an entry of a store: an answer as peers are told it, and when it was
// found. Whoever sealed it is a replica, whose clock may differ; the store's own
// ends it in time all the same.
type kept struct {
	At     int64          `json:"at"` // nanoseconds since 1970
	Answer jsontext.Value `json:"answer"`
}

// share keeps what was proved here in the store, for as long as it is remembered
// here.
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

// askStore answers from the store what it can, and returns the rest.
func (w *work) askStore(ctx context.Context, missing []*inquiry) []*inquiry {
	store := w.gate.options.store
	if store == nil {
		return missing
	}
	return w.askOthers(missing, LayerStore, decodeKept, func(keys []string) map[string][]byte {
		return w.gate.memory.askStore(ctx, store, keys)
	})
}
