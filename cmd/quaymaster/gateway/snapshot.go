package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/cache/snapshot"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
)

// snapshotRoom is the size of a part before compression, in bytes. Digests and keys compress to a
// half at least, and a Secret may have a mebibyte.
const snapshotRoom = 1<<20 + 1<<19

// snapshotParts bounds the parts: at a kilobyte for each image, some ten thousand images.
const snapshotParts = 8

// snapshotTimeout bounds the delay of the endpoints by a snapshot.
const snapshotTimeout = 5 * time.Second

// addSnapshot saves verified claims, once the endpoints are active.
func (g *assembly) addSnapshot() {
	g.group.Add("snapshot", gateway.Loop(func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-g.open:
			if g.kept != nil {
				g.kept.Run(ctx)
			}
		}
	}))
}

// remember restores the engine's cache, and starts saving it. A missing snapshot does not prevent
// a start.
func (g *assembly) remember(ctx context.Context, engine *gate.Gate, key []byte) error {
	settings := g.configuration.Snapshot
	store, err := g.snapshotStore()
	if err != nil || store == nil {
		return err
	}
	sealer, err := snapshot.NewSealer(key)
	if err != nil {
		return err
	}
	g.kept, err = snapshot.New(snapshot.Options{
		Memory: engine, Store: store, Sealer: sealer, Room: snapshotRoom, Parts: snapshotParts, Interval: time.Duration(settings.Interval),
		Failed: gateway.Warn(g.log, "what was proved is not kept for a restart as it should be"),
	})
	if err != nil {
		return err
	}
	brief, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	entries, err := g.kept.Restore(brief)
	if errors.Is(err, snapshot.ErrSealed) {
		g.log.Warn("a snapshot is not used: it was sealed under another key, or changed since", slog.String("error", err.Error()))
	} else {
		gateway.Warn(g.log, "a snapshot is not used as a whole")(err)
	}
	if entries > 0 {
		g.log.Info("what was proved before is known again", slog.Int("entries", entries))
	} else if err == nil {
		g.log.Info("nothing that was proved before is known: there is no snapshot, or nothing in it holds")
	}
	return nil
}

// snapshotStore is the store of snapshots; nil for none.
func (g *assembly) snapshotStore() (snapshot.Store, error) {
	settings := g.configuration.Snapshot
	switch {
	case settings.Disabled || *g.configuration.Ages.Stale == 0:
		return nil, nil
	case settings.Folder != "":
		return snapshot.NewFolder(settings.Folder)
	case g.cluster == nil:
		return nil, nil
	}
	return &snapshotSecrets{secrets: g.cluster.Client.Typed.CoreV1().Secrets(g.configuration.Namespace)}, nil
}
