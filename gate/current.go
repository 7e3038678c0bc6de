package gate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
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

// FailOpen reports whether a call about the subject that could not be evaluated (a panic,
// a full queue, a truncated body) may be admitted. Every policy that may match the subject
// must fail open or enforce nothing. No override may deny anything there, since an
// unverified image may be the denied one. It matches the subject's group, version, kind,
// subresource, namespace and time. A bare subject without a namespace may be in any, since
// an unread image review has none. Without policies the answer is no.
func (s Snapshot) FailOpen(subject *policy.Subject) bool {
	if s.Policies == nil {
		return false
	}
	if s.Mirrors.Denies() && subject.Kind == "Pod" || s.Policies.MayDeny(subject) {
		return false
	}
	for _, p := range s.Policies.Policies() {
		if !p.FailOpen && !p.AuditOnly && mayConcern(p, subject) {
			return false
		}
	}
	return true
}

// mayConcern reports whether a policy may match a subject. One without targets may match
// anything, unless it has no rule, or only rules about documents that are no objects.
func mayConcern(p *policy.Policy, subject *policy.Subject) bool {
	isAnywhere := subject.Bare && subject.Namespace == ""
	if p.Namespace != "" && p.Namespace != subject.Home() && !isAnywhere {
		return false
	}
	for _, m := range p.Mutations {
		if anyConcerns(m.Targets(), subject) {
			return true
		}
	}
	for _, v := range p.Validations {
		if anyConcerns(v.Targets(), subject) {
			return true
		}
	}
	if len(p.Targets) == 0 {
		onlyDocuments := len(p.Rules) > 0 && !slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return !policy.OnlyDocuments(r) })
		return !onlyDocuments && (len(p.Rules) > 0 || p.Broken != nil)
	}
	return anyConcerns(p.Targets, subject)
}

func anyConcerns(targets []policy.Target, subject *policy.Subject) bool {
	return slices.ContainsFunc(targets, func(t policy.Target) bool { return t.Means(subject) })
}
