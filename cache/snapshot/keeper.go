package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Memory is what is kept.
type Memory interface {
	// Snapshot returns at most so many parts of at most room bytes each, the same as
	// long as it knows the same.
	Snapshot(room, parts int) ([][]byte, error)
	// RestoreTrusted takes over a part, and returns how many entries of it hold still.
	RestoreTrusted(part []byte) (entries int, err error)
}

// Store is where it is kept.
type Store interface {
	// Load returns what was saved last; nothing where nothing was. What it has read
	// before an error counts, and nothing is saved after one.
	Load(ctx context.Context) ([][]byte, error)
	// Save replaces it.
	Save(ctx context.Context, parts [][]byte) error
}

// Options are what a Keeper cannot do without.
type Options struct {
	Memory Memory
	Store  Store
	Sealer *Sealer
	// Room bounds a part before it is compressed, in bytes, and Parts how many there
	// are.
	Room, Parts int
	// Interval is how often is looked whether there is something new: from a second to
	// a day.
	Interval time.Duration
	// Failed is told what went wrong; it is tried again with the next interval.
	Failed func(error)
}

// Keeper keeps a memory in a store, beside other keepers of the same: each takes over
// what the others saved before it saves, so that none undoes what another knew.
type Keeper struct {
	Options
	loaded bool // at least once
}

// New returns a Keeper.
func New(o Options) (*Keeper, error) {
	switch {
	case o.Memory == nil || o.Store == nil || o.Sealer == nil || o.Failed == nil:
		return nil, errors.New("keep snapshots: want a memory, a store, a sealer, and somebody to tell of failures")
	case o.Room < 1 || o.Room > MaxPart || o.Parts < 1 || o.Parts > MaxParts:
		return nil, fmt.Errorf("keep snapshots: %d parts of %d bytes: want 1 to %d of 1 to %d", o.Parts, o.Room, MaxParts, MaxPart)
	case o.Interval < time.Second || o.Interval > 24*time.Hour:
		return nil, fmt.Errorf("keep snapshots: every %s: want a second to a day", o.Interval)
	}
	return &Keeper{Options: o}, nil
}

// Restore gives the memory what was saved, and returns how many entries are news to it
// and hold still. What cannot be opened or read is left out, and the error says so.
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

// takeOver gives the memory what can be opened, and returns that as well.
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

// lastSave bounds the saving of what is new when the time is over, in which others may
// save, too: so it is tried some times.
const (
	lastSave  = 5 * time.Second
	lastTries = 5
)

// Run saves what is new at each interval until ctx ends, and once more then. What Restore
// could not load it takes over as soon as it can.
func (k *Keeper) Run(ctx context.Context) {
	next := time.NewTimer(k.pause())
	defer next.Stop()
	for said := false; ; {
		select {
		case <-next.C:
			if err := k.save(ctx); k.loaded || !said { // once is enough of what is tried so often
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

// again is when it is tried again to load what nobody could load yet: somebody waits for
// it.
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

// save saves what is new. What cannot be opened or read is replaced; what could not be
// loaded is not, for it may be all that anybody knows.
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
		if sealed[i], err = k.Sealer.Seal(part); err != nil {
			return err
		}
	}
	return k.Store.Save(ctx, sealed)
}
