package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy/set"
)

// Current is a State with a replaceable snapshot. A request keeps the snapshot that it
// started with; later requests use the new one. The zero value has neither policies nor
// trust. It is safe for concurrent use.
type Current struct {
	writing  sync.Mutex // among writers; readers never wait
	snapshot atomic.Pointer[Snapshot]
}

// Replace replaces policies, trust and mirrors together; a nil one is left unchanged.
func (c *Current) Replace(next Snapshot) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if now := c.snapshot.Load(); now != nil {
		if next.Policies == nil {
			next.Policies = now.Policies
		}
		if next.Prover == nil {
			next.Prover = now.Prover
		}
		if next.Mirrors == nil {
			next.Mirrors = now.Mirrors
		}
	}
	c.snapshot.Store(&next)
}

// ReplacePolicies replaces the policies.
func (c *Current) ReplacePolicies(policies *set.Set) { c.Replace(Snapshot{Policies: policies}) }

// ReplaceProver replaces the trust.
func (c *Current) ReplaceProver(prover Prover) { c.Replace(Snapshot{Prover: prover}) }

// ReplaceMirrors replaces the mirrors.
func (c *Current) ReplaceMirrors(mirrors *mirror.Set) { c.Replace(Snapshot{Mirrors: mirrors}) }

// Ready returns nil once both policies and trust are loaded, else an error that names the
// missing part.
func (c *Current) Ready() error {
	_, err := c.load()
	return err
}

// Snapshot implements State.
func (c *Current) Snapshot(context.Context) (Snapshot, error) { return c.load() }

func (c *Current) load() (Snapshot, error) {
	now := c.snapshot.Load()
	switch {
	case now == nil || now.Policies == nil && now.Prover == nil:
		return Snapshot{}, errors.New("neither the policies nor the trusted roots and keys are loaded yet; try again in a moment")
	case now.Policies == nil:
		return Snapshot{}, errors.New("the policies are not loaded yet; try again in a moment")
	case now.Prover == nil:
		return Snapshot{}, errors.New("the trusted roots and keys are not loaded yet; try again in a moment")
	}
	return *now, nil
}
