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
	EntryBundle      = "ca.crt"    // the authorities, the one that signs first
	EntryAuthority   = "ca.key"    // the key of the one that signs
	EntryCertificate = "tls.crt"   // the leaf that is served
	EntryKey         = "tls.key"   // its key
	EntryPeers       = "peers.key" // 32 bytes by which replicas know one another
)

// What a Store has to say.
var (
	// ErrAbsent: there is nothing yet.
	ErrAbsent = errors.New("there is nothing yet")
	// ErrConflict: somebody else wrote first.
	ErrConflict = errors.New("somebody else wrote first")
)

// Content is what a Store holds.
type Content struct {
	Entries map[string][]byte
	// Version names this content; it is the Store's own.
	Version string
	// Ours says that the gateway made it or was given it to fill, by a mark beside
	// the entries, such as a label. What is broken is made anew only there.
	Ours bool
}

// Store keeps the authority, for all replicas.
type Store interface {
	// Get returns what is there; ErrAbsent if nothing is.
	Get(ctx context.Context) (Content, error)
	// Put writes entries and marks them as the gateway's. With an empty version
	// nothing must be there yet, else what is there must still be of the version;
	// ErrConflict if not. Entries under other names stay.
	Put(ctx context.Context, entries map[string][]byte, version string) error
}

// Memory is a Store that forgets with the process. The zero value is empty.
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
