package trustroot

import (
	"bytes"
	"fmt"
	"sync"
)

// Roots keeps TrustRoots in memory. Those of keys stand for themselves; whoever
// reads TUF repositories, beside the requests, says with Answer what one stands for,
// or with Fail why nobody knows. It is safe for concurrent use; the zero Roots is
// empty.
type Roots struct {
	mu    sync.RWMutex
	known map[string]rootState
}

// rootState is a TrustRoot and what its repository said; failed is why the
// document, or its repository, cannot be read.
type rootState struct {
	root   *TrustRoot
	answer []byte
	failed error
}

// Put adds a TrustRoot or replaces the one of its name. What its TUF repository
// said is kept while the document stays the same.
func (r *Roots) Put(root *TrustRoot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.known[root.Name]; ok && have.root != nil && have.root.Hash == root.Hash {
		return
	}
	r.set(root.Name, rootState{root: root})
}

// Break says that the TrustRoot of a name cannot be read, so that nobody goes on
// with what it once said.
func (r *Roots) Break(name string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(name, rootState{failed: why})
}

// Remove forgets a TrustRoot.
func (r *Roots) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, name)
}

// Answer says what the TUF repository of a TrustRoot said. It is refused if the
// document has changed since, and if it is no trusted_root.json; then what was
// known before stays.
func (r *Roots) Answer(name, hash string, trustedRoot []byte) error {
	if _, err := Unmarshal(trustedRoot); err != nil {
		return fmt.Errorf("TrustRoot %s: %w", name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	have, ok := r.known[name]
	if !ok || have.root == nil || have.root.TUF == nil || have.root.Hash != hash {
		return fmt.Errorf("TrustRoot %s: its document is another one now", name)
	}
	have.answer, have.failed = bytes.Clone(trustedRoot), nil
	r.set(name, have)
	return nil
}

// Fail says why the TUF repository of a TrustRoot cannot be read. What it said before
// stays; where it said nothing yet, who asks is told why. Of a document that has
// changed since, it is nothing.
func (r *Roots) Fail(name, hash string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.known[name]; ok && have.root != nil && have.root.TUF != nil && have.root.Hash == hash {
		have.failed = why
		r.set(name, have)
	}
}

func (r *Roots) set(name string, state rootState) {
	if r.known == nil {
		r.known = map[string]rootState{}
	}
	r.known[name] = state
}

// TrustedRoot returns what a TrustRoot stands for now.
func (r *Roots) TrustedRoot(name string) ([]byte, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	have, ok := r.known[name]
	switch {
	case !ok:
		return nil, fmt.Errorf("there is no TrustRoot %s", name)
	case have.root == nil:
		return nil, fmt.Errorf("the TrustRoot %s cannot be read: %w", name, have.failed)
	case have.root.TUF == nil:
		return have.root.TrustedRoot, nil
	case have.answer == nil && have.failed != nil:
		return nil, fmt.Errorf("the TUF repository of the TrustRoot %s cannot be read: %w", name, have.failed)
	case have.answer == nil:
		return nil, fmt.Errorf("the TUF repository of the TrustRoot %s was not read yet", name)
	}
	return have.answer, nil
}
