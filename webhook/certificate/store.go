package certificate

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
)

// The entries of a Store.
const (
	EntryBundle      = "ca.crt"    // the authorities, the signing one first
	EntryAuthority   = "ca.key"    // the key of the signing authority
	EntryCertificate = "tls.crt"   // the serving leaf
	EntryKey         = "tls.key"   // its key
	EntryPeers       = "peers.key" // the 32-byte key of the replicas
)

// Errors of a Store.
var (
	// ErrAbsent means that the Store is empty.
	ErrAbsent = errors.New("the store is empty")
	// ErrConflict means that another writer was first.
	ErrConflict = errors.New("another writer was first")
)

// Content is a Store's content.
type Content struct {
	Entries map[string][]byte
	// Version identifies the content. Its format is the Store's own.
	Version string
	// Ours reports whether the gateway made the content or may fill it, according to a mark next to
	// the entries, such as a label. Broken entries are recreated only if it is set.
	Ours bool
}

// Store keeps the authority for all replicas.
type Store interface {
	// Get returns the content, or ErrAbsent.
	Get(ctx context.Context) (Content, error)
	// Put writes entries and marks them as the gateway's. An empty version requires that the Store
	// is empty; otherwise the current version must match. Put returns ErrConflict if it does not.
	// Entries under other names are kept.
	Put(ctx context.Context, entries map[string][]byte, version string) error
}

// Memory is an in-process Store. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	content Content
	version int
}

// Get implements Store.
func (m *Memory) Get(context.Context) (Content, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.version == 0 {
		return Content{}, ErrAbsent
	}
	c := m.content
	c.Entries = cloned(c.Entries)
	return c, nil
}

// Put implements Store.
func (m *Memory) Put(_ context.Context, entries map[string][]byte, version string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if version != m.content.Version {
		return ErrConflict
	}
	m.version++
	next := cloned(m.content.Entries)
	maps.Copy(next, cloned(entries))
	m.content = Content{Entries: next, Version: strconv.Itoa(m.version), Ours: true}
	return nil
}

func cloned(entries map[string][]byte) map[string][]byte {
	clone := make(map[string][]byte, len(entries))
	for name, value := range entries {
		clone[name] = bytes.Clone(value)
	}
	return clone
}
