package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Memory is the cache to save.
type Memory interface {
	// Snapshot returns at most so many parts of at most room bytes each. Equal content gives
	// equal parts.
	Snapshot(room, parts int) ([][]byte, error)
	// RestoreTrusted restores a part, and returns the number of its entries that are still valid.
	RestoreTrusted(part []byte) (entries int, err error)
}

// Store is the storage.
type Store interface {
	// Load returns the last saved parts; none if nothing was saved. Parts that were read before
	// an error count, and nothing is saved after an error.
	Load(ctx context.Context) ([][]byte, error)
	// Save replaces the saved parts.
	Save(ctx context.Context, parts [][]byte) error
}

// Options are the required settings of a Keeper.
type Options struct {
	Memory Memory
	Store  Store
	Sealer *Sealer
	// Room bounds a part before compression, in bytes, and Parts their number.
	Room, Parts int
	// Interval is the time between two checks for changes: from a second to a day.
	Interval time.Duration
	// Failed receives errors; the operation is repeated at the next interval.
	Failed func(error)
}

// Keeper saves a cache to a store, concurrently with the keepers of other replicas. Each restores
// the others' parts before it saves, so that none overwrites another's entries.
type Keeper struct {
	Options
	loaded bool // at least once
}

// New returns a Keeper.
func New(o Options) (*Keeper, error) {
	switch {
	case o.Memory == nil || o.Store == nil || o.Sealer == nil || o.Failed == nil:
		return nil, errors.New("keep snapshots: Memory, Store, Sealer and Failed must not be nil")
	case o.Room < 1 || o.Room > MaxPart || o.Parts < 1 || o.Parts > MaxParts:
		return nil, fmt.Errorf("keep snapshots: %d parts of %d bytes: want 1 to %d of 1 to %d", o.Parts, o.Room, MaxParts, MaxPart)
	case o.Interval < time.Second || o.Interval > 24*time.Hour:
		return nil, fmt.Errorf("keep snapshots: every %s: want a second to a day", o.Interval)
	}
	return &Keeper{Options: o}, nil
}

// Restore loads the saved parts into the cache, and returns the number of new entries that are
// still valid. Parts that cannot be opened or read are omitted, and the error lists them.
func (k *Keeper) Restore(ctx context.Context) (entries int, err error) {
	sealed, err := k.load(ctx)
	entries, _, unfit := k.takeOver(sealed)
	return entries, errors.Join(err, unfit)
}

func (k *Keeper) load(ctx context.Context) (sealed [][]byte, err error) {
	sealed, err = k.Store.Load(ctx)
	k.loaded = k.loaded || err == nil
	return sealed, err
}

// takeOver loads the parts that can be opened, and also returns them.
func (k *Keeper) takeOver(sealed [][]byte) (entries int, saved [][]byte, err error) {
	var errs []error
	for _, one := range sealed[:min(len(sealed), MaxParts)] {
		part, err := k.Sealer.Open(one)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		n, err := k.Memory.RestoreTrusted(part)
		entries, saved = entries+n, append(saved, part)
		errs = append(errs, err)
	}
	return entries, saved, errors.Join(errs...)
}

// lastSave bounds the final save. Other replicas may save at the same time, so it has several
// attempts.
const (
	lastSave  = 5 * time.Second
	lastTries = 5
)

// Run saves changes at each interval until ctx ends, and then once more. It also repeats a failed
// Restore until it succeeds.
func (k *Keeper) Run(ctx context.Context) {
	next := time.NewTimer(k.pause())
	defer next.Stop()
	for said := false; ; {
		select {
		case <-next.C:
			if err := k.save(ctx); k.loaded || !said { // frequent attempts report an error once
				k.told(err)
			}
			said = !k.loaded
			next.Reset(k.pause())
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
			defer cancel()
			err := k.save(last)
			for try := 1; err != nil && try < lastTries && last.Err() == nil; try++ {
				err = k.save(last)
			}
			k.told(err)
			return
		}
	}
}

// again is the interval of attempts to load until one succeeds; requests are slower until then.
const again = 5 * time.Second

func (k *Keeper) pause() time.Duration {
	if k.loaded {
		return k.Interval
	}
	return min(k.Interval, again)
}

func (k *Keeper) told(err error) {
	if err != nil {
		k.Failed(err)
	}
}

// save saves changes. Parts that cannot be opened or read are replaced. After a failed load
// nothing is replaced, because the saved parts may be the only copy.
func (k *Keeper) save(ctx context.Context) error {
	sealed, err := k.load(ctx)
	_, saved, unfit := k.takeOver(sealed)
	k.told(unfit)
	if err != nil {
		return err
	}
	parts, err := k.Memory.Snapshot(k.Room, k.Parts)
	if err != nil || slices.EqualFunc(parts, saved, bytes.Equal) {
		return err
	}
	return k.replace(ctx, parts)
}

func (k *Keeper) replace(ctx context.Context, parts [][]byte) error {
	sealed := make([][]byte, len(parts))
	for i, part := range parts {
		var err error
		sealed[i], err = k.Sealer.Seal(part)
		if err != nil {
			return err
		}
	}
	return k.Store.Save(ctx, sealed)
}
