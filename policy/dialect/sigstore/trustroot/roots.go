package trustroot

import (
	"bytes"
	"fmt"
	"sync"
)

// Roots keeps TrustRoots in memory. Those of keys are complete by themselves. The reader
// of TUF repositories, which runs outside of requests, sets a root with Answer, or reports
// an error with Fail. It is safe for concurrent use; the zero Roots is empty.
type Roots struct {
	mu    sync.RWMutex
	known map[string]rootState
}

// rootState is a TrustRoot and the root from its repository; failed is why the document,
// or its repository, cannot be read.
type rootState struct {
	root   *TrustRoot
	answer []byte
	failed error
}

// Put adds a TrustRoot or replaces the one of its name. The root from its TUF repository
// is kept while the document stays the same.
func (r *Roots) Put(root *TrustRoot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have, ok := r.known[root.Name]; ok && have.root != nil && have.root.Hash == root.Hash {
		return
	}
	r.set(root.Name, rootState{root: root})
}

// Break marks a TrustRoot as unreadable, so that its earlier root is not used any more.
func (r *Roots) Break(name string, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(name, rootState{failed: why})
}

// Remove deletes a TrustRoot.
func (r *Roots) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, name)
}

// Answer sets the root from the TUF repository of a TrustRoot. It is refused if the
// document has changed since, and if it is no trusted_root.json; then the earlier root
// stays.
func (r *Roots) Answer(name, hash string, trustedRoot []byte) error {
	read, err := Unmarshal(trustedRoot)
	if err == nil {
		err = check(read)
	}
	if err != nil {
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

// Fail records why the TUF repository of a TrustRoot cannot be read. An earlier root
// stays; without one, TrustedRoot returns the error. It has no effect if the document has
// changed since.
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

// TrustedRoot returns the current root of a TrustRoot.
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
