package publish

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
)

// shelf is the store of one API.
type shelf struct {
	api   policyreport.API
	store Store
	// absentUntil is the time of the next check whether the API is served, in nanoseconds since
	// the epoch; 0 while it is served or unknown.
	absentUntil atomic.Int64
}

// absent reports whether the API was not served at the last check.
func (s *shelf) absent(now time.Time) bool { return now.UnixNano() < s.absentUntil.Load() }

// allAbsent reports whether no API is served.
func (p *Publisher) allAbsent() bool {
	for _, s := range p.shelves {
		if s.absentUntil.Load() == 0 || !s.absent(p.options.Now()) {
			return false
		}
	}
	return true
}

// write writes due changes until ctx ends.
func (p *Publisher) write(ctx context.Context) {
	for {
		c, ok := p.pending.next(ctx)
		if !ok {
			return
		}
		p.guarded(ctx, c)
		p.pending.done(c.address())
	}
}

// guarded writes a change, and converts a panic to an error.
func (p *Publisher) guarded(ctx context.Context, c *change) {
	var failed error
	defer func() {
		if v := recover(); v != nil {
			failed = fmt.Errorf("internal error at the report %s/%s, which is a defect: %v", c.at.Namespace, c.at.Name, v)
		}
		if failed != nil && ctx.Err() == nil {
			p.retry(c, failed)
		}
	}()
	if c.ends() {
		return
	}
	for _, s := range p.shelves {
		failed = errors.Join(failed, p.place(ctx, s, c))
	}
}

// retry schedules another attempt, unless it would fail, too.
func (p *Publisher) retry(c *change, failed error) {
	p.options.Observer.Failed(failed)
	results, _ := c.size()
	c.tries++
	if c.tries >= maxTries {
		p.options.Observer.Dropped(Rejected, results)
		return
	}
	p.options.Observer.Wrote(Retried)
	p.pending.again(c, backoff(c.tries))
}

// place writes a change to one API. Its errors are retryable.
func (p *Publisher) place(ctx context.Context, s *shelf, c *change) error {
	results, _ := c.size()
	if s.absent(p.options.Now()) {
		p.options.Observer.Dropped(NotServed, results)
		return nil
	}
	err := p.merge(ctx, s, c)
	switch {
	case errors.Is(err, ErrNotServed):
		if s.absentUntil.Swap(p.options.Now().Add(absentPause).UnixNano()) == 0 {
			p.options.Observer.Served(s.api, false)
		}
		p.options.Observer.Dropped(NotServed, results)
		return nil
	case errors.Is(err, ErrRejected):
		p.options.Observer.Failed(err)
		p.options.Observer.Dropped(Rejected, results)
		err = nil
	case errors.Is(err, ErrNotFound):
		return nil // the namespace is deleted, and with it the scope of the report
	}
	if err == nil && s.absentUntil.Swap(0) != 0 {
		p.options.Observer.Served(s.api, true)
	}
	return err
}

// merge reads a report, changes it and writes it under the version that was read. It repeats
// after conflicts.
func (p *Publisher) merge(ctx context.Context, s *shelf, c *change) error {
	at := place{s.api, c.address()}
	beyond := false
	for range maxConflicts {
		stored, known := p.memory.Get(at)
		if !known && (beyond || !c.fresh) {
			var err error
			stored, err = s.read(ctx, c.at, beyond)
			if err != nil {
				return err
			}
		}
		parts, err := p.edit(s, c, stored)
		if err != nil {
			return err
		}
		if len(parts) == 0 && known {
			p.memory.Delete(at) // another writer's changes are unknown
			continue
		}
		if len(parts) == 0 {
			p.memory.Put(at, stored, rememberedAge)
			p.options.Observer.Wrote(Unchanged)
			return nil
		}
		p.memory.Delete(at)
		written, err := s.write(ctx, parts, stored)
		if err == nil {
			p.memory.Put(at, written, rememberedAge)
			p.options.Observer.Wrote(Changed)
			return nil
		}
		isUpdate := len(stored) > 0
		if !errors.Is(err, ErrConflict) && (!isUpdate || !errors.Is(err, ErrNotFound)) {
			return err
		}
		p.options.Observer.Wrote(Conflicted)
		beyond = true
	}
	return fmt.Errorf("write the report %s/%s: %w, %d times in a row", c.at.Namespace, c.at.Name, ErrConflict, maxConflicts)
}

// edit returns the parts to write for a change.
func (p *Publisher) edit(s *shelf, c *change, stored remembered) ([]policyreport.Part, error) {
	r, err := policyreport.Decode(c.at, p.options.Selection, stored.texts())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRejected, err)
	}
	c.apply(r, p.options.Unasked())
	parts, err := r.Encode(s.api, p.options.Limits)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRejected, err)
	}
	for _, each := range parts {
		if each.Action != policyreport.Keep {
			return parts, nil
		}
	}
	return nil, nil
}

// place identifies a report of an API.
type place struct {
	api policyreport.API
	at  address
}

// remembered are the parts of a report as stored, in order.
type remembered []part

type part struct {
	name string
	text []byte
}

func (r remembered) cost() int {
	cost := 200
	for _, each := range r {
		cost += len(each.text)
	}
	return cost
}

func (r remembered) texts() [][]byte {
	texts := make([][]byte, len(r))
	for i, each := range r {
		texts[i] = each.text
	}
	return texts
}

// read reads the parts of a report; a missing report has none. Beyond means that there may be
// more of them than the first part records.
func (s *shelf) read(ctx context.Context, at policyreport.Place, beyond bool) (remembered, error) {
	var parts remembered
	count := 1
	for number := 1; number <= count || beyond && number <= policyreport.MaxParts; number++ {
		name := policyreport.PartName(at.Name, number)
		text, err := s.store.Get(ctx, at.Namespace, name)
		switch {
		case errors.Is(err, ErrNotFound) && number < count:
			continue // deleted externally: the next scan restores its results
		case errors.Is(err, ErrNotFound):
			return parts, nil
		case err != nil:
			return nil, err
		}
		if number == 1 {
			count = policyreport.Parts(text)
		}
		parts = append(parts, part{name, text})
	}
	return parts, nil
}

// write writes the parts that differ, and returns all resulting parts. The first part is written
// first: a concurrent reader then may see a part as missing, but never an existing part as
// foreign.
func (s *shelf) write(ctx context.Context, parts []policyreport.Part, stored remembered) (remembered, error) {
	before := map[string][]byte{}
	for _, each := range stored {
		before[each.name] = each.text
	}
	var written remembered
	for _, each := range parts {
		switch each.Action {
		case policyreport.Keep:
			written = append(written, part{each.Name, before[each.Name]})
		case policyreport.Delete:
			if err := s.store.Delete(ctx, each.Namespace, each.Name, each.Version); err != nil && !errors.Is(err, ErrNotFound) {
				return nil, err
			}
		case policyreport.Create, policyreport.Update:
			text, err := s.store.Put(ctx, each.JSON)
			if err != nil {
				return nil, err
			}
			written = append(written, part{each.Name, text})
		}
	}
	return written, nil
}

var _ report.Sink = (*Publisher)(nil)
