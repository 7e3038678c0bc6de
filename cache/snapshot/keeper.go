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
	// before an error counts.
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
type Keeper struct{ Options }

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
	return &Keeper{o}, nil
}

// Restore gives the memory what was saved, and returns how many entries are news to it
// and hold still. What cannot be opened or read is left out, and the error says so.
func (k *Keeper) Restore(ctx context.Context) (entries int, err error) {
	entries, _, err = k.restore(ctx)
	return entries, err
}

// restore returns what is saved as well.
func (k *Keeper) restore(ctx context.Context) (entries int, saved [][]byte, err error) {
	sealed, err := k.Store.Load(ctx)
	errs := []error{err}
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

// lastSave bounds the saving of what is new when the time is over.
const lastSave = 5 * time.Second

// Run saves what is new at each interval until ctx ends, and once more then.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(k.Interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.save(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSave)
			defer cancel()
			k.save(last)
			return
		}
	}
}

// save saves what is new.
func (k *Keeper) save(ctx context.Context) {
	_, saved, err := k.restore(ctx)
	if err != nil {
		k.Failed(err) // and what could not be read is replaced
	}
	parts, err := k.Memory.Snapshot(k.Room, k.Parts)
	if err == nil && !slices.EqualFunc(parts, saved, bytes.Equal) {
		err = k.replace(ctx, parts)
	}
	if err != nil {
		k.Failed(err)
	}
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
