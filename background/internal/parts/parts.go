// Package parts knows the parts of objects that requests for subresources write (Kubernetes 1.37), as a watch
// last returned them: a part that differs shows a request.
package parts

import (
	"maps"
	"sync"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/subresource"
)

// part identifies a part of an object in one version: each has a watch.
type part struct{ apiVersion, kind, uid, subresource string }

// Parts are hashes by part. It is safe for concurrent use. Create one with New.
type Parts struct {
	mu   sync.Mutex
	sums map[part]inspect.Sum
}

// New returns no parts.
func New() *Parts { return &Parts{sums: map[part]inspect.Sum{}} }

// Compare replaces the hash of a part, and reports whether it differs from a known one.
func (p *Parts) Compare(t record.Trigger, name string, is inspect.Sum) (differs, known bool) {
	of := part{apiVersion: t.APIVersion, kind: t.Kind, uid: t.UID, subresource: name}
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.sums[of]
	p.sums[of] = is
	return known && before != is, known
}

// Remove removes the hashes of an object.
func (p *Parts) Remove(t record.Trigger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range subresource.Of(inspect.Group(t.APIVersion), t.Kind) {
		delete(p.sums, part{t.APIVersion, t.Kind, t.UID, name})
	}
}

// RemoveAll removes the hashes of a kind.
func (p *Parts) RemoveAll(apiVersion, kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.sums, func(of part, _ inspect.Sum) bool { return of.apiVersion == apiVersion && of.kind == kind })
}
