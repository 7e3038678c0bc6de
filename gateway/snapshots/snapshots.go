package snapshots

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/cache/snapshot"
	"github.com/quaymaster/quaymaster/gateway"
)

// room is the size of a part before compression, in bytes. Digests and keys compress to a half at
// least, and a Secret may have a mebibyte.
const room = 1<<20 + 1<<19

// maxParts bounds the parts: at a kilobyte for each image, some ten thousand images.
const maxParts = 8

// restoreTimeout bounds the delay of the endpoints by a snapshot.
const restoreTimeout = 5 * time.Second

// Config holds the dependencies of a Keeper.
type Config struct {
	// Store opens the store; a nil store keeps nothing.
	Store func() (snapshot.Store, error)
	// Interval is the time between two checks for changes.
	Interval time.Duration
	// Open is closed once the endpoints are active.
	Open <-chan struct{}
	Log  *slog.Logger
}

// Keeper is the component that saves verified claims, once the endpoints are active.
type Keeper struct {
	gateway.OnReplicas
	config Config
	kept   *snapshot.Keeper // nil until they are restored, and where none are kept
}

// New makes a Keeper.
func New(c Config) *Keeper { return &Keeper{config: c} }

// Run saves the claims until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-k.config.Open:
		if k.kept != nil {
			k.kept.Run(ctx)
		}
	}
	return nil
}

// Restore restores a cache; call it before the endpoints are active. key seals the snapshots. A
// missing snapshot does not prevent a start.
func (k *Keeper) Restore(ctx context.Context, cache snapshot.Memory, key []byte) error {
	log := k.config.Log
	store, err := k.config.Store()
	if err != nil || store == nil {
		return err
	}
	sealer, err := snapshot.NewSealer(key)
	if err != nil {
		return err
	}
	k.kept, err = snapshot.New(snapshot.Options{
		Memory: cache, Store: store, Sealer: sealer, Room: room, Parts: maxParts, Interval: k.config.Interval,
		Failed: gateway.Warn(log, "the snapshot of verified claims could not be saved"),
	})
	if err != nil {
		return err
	}
	brief, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	entries, err := k.kept.Restore(brief)
	if errors.Is(err, snapshot.ErrSealed) {
		log.Warn("a snapshot is not used: it was sealed under another key, or changed since", slog.String("error", err.Error()))
	} else {
		gateway.Warn(log, "a snapshot is not used as a whole")(err)
	}
	if entries > 0 {
		log.Info("restored verified claims from the snapshot", slog.Int("entries", entries))
	} else if err == nil {
		log.Info("no usable snapshot: starting with an empty cache")
	}
	return nil
}
