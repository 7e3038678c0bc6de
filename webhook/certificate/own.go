package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// OwnConfig configures the gateway's own authority.
type OwnConfig struct {
	// Store is shared by all replicas. Where names it in errors, as in "secret
	// quaymaster/quaymaster-certificate".
	Store Store
	Where string
	// Names are the DNS names and IP addresses that clients connect to: at least one.
	Names []string
	// Log receives renewals and errors.
	Log *slog.Logger
	// Follows makes the source read only: it creates and renews nothing, and waits for another
	// replica to write the Store.
	Follows bool
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Own is a Source of the gateway's own authority. It is safe for concurrent use.
type Own struct {
	*Source
	config OwnConfig

	mu   sync.Mutex // serialises Refresh
	last keyMaterial
	peer struct {
		sync.RWMutex
		key []byte
	}
}

// storeTimeout bounds one read and write of the Store.
const storeTimeout = 15 * time.Second

// NewOwn makes an Own that has not read its Store yet.
func NewOwn(config OwnConfig) (*Own, error) {
	if config.Store == nil || config.Where == "" || config.Log == nil {
		return nil, errors.New("own certificate: a store, its name and a log are required")
	}
	if len(config.Names) == 0 || len(config.Names) > maxNames {
		return nil, fmt.Errorf("own certificate: %d names: must be 1 to %d", len(config.Names), maxNames)
	}
	for _, name := range config.Names {
		if net.ParseIP(name) == nil && (name == "" || strings.ContainsAny(name, " /:*@")) {
			return nil, fmt.Errorf("own certificate: %q is not a DNS name or an IP address", name)
		}
	}
	config.Names = slices.Clone(config.Names)
	return &Own{Source: newSource(config.Now), config: config}, nil
}

// PeerKey returns the 32-byte key that authenticates replicas to each other; nil until the Store
// was read. It changes only if it was lost.
func (o *Own) PeerKey() []byte {
	o.peer.RLock()
	defer o.peer.RUnlock()
	return bytes.Clone(o.peer.key)
}

// Run reads the Store at once and then every Interval until ctx ends. Until a certificate is loaded
// it reads the Store more often.
func (o *Own) Run(ctx context.Context) { follow(ctx, o.Source, o.config.Log, o.Refresh) }

// Refresh reads the Store once. It adopts changes of other replicas, creates missing parts and
// renews due ones. After an error the previous certificate stays in use.
func (o *Own) Refresh(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for range maxAttempts {
		next, err := o.look(ctx)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.config.Where, err)
		}
		o.take(ctx, next)
		return nil
	}
	return fmt.Errorf("%s: %d concurrent writes by other replicas; retrying", o.config.Where, maxAttempts)
}

// look reads the Store and writes it if something must change.
func (o *Own) look(ctx context.Context) (keyMaterial, error) {
	content, err := o.config.Store.Get(ctx)
	if o.config.Follows && (errors.Is(err, ErrAbsent) || err == nil && empty(content.Entries)) {
		return keyMaterial{}, errors.New("it does not exist yet; waiting for another replica to create it")
	}
	if err != nil && !errors.Is(err, ErrAbsent) {
		return keyMaterial{}, fmt.Errorf("read: %w", err)
	}
	e := read(content.Entries)
	if o.config.Follows {
		return e, errors.Join(e.flaws...)
	}
	if len(e.flaws) > 0 && !content.Ours && !empty(content.Entries) {
		return keyMaterial{}, fmt.Errorf("it has content that the gateway did not write (%w): configure another name, or delete it", errors.Join(e.flaws...))
	}
	if len(e.flaws) > 0 && !empty(content.Entries) {
		o.config.Log.LogAttrs(ctx, slog.LevelWarn, "recreating broken entries of the certificate store",
			slog.String("store", o.config.Where), slog.Any("error", errors.Join(e.flaws...)))
	}
	e.inherit(o.last)
	changed, err := e.renew(o.config.Names, o.now())
	if err != nil || !changed {
		return e, err
	}
	entries, err := e.entries()
	if err != nil {
		return keyMaterial{}, err
	}
	if err := o.config.Store.Put(ctx, entries, content.Version); err != nil {
		return keyMaterial{}, fmt.Errorf("write: %w", err)
	}
	return e, nil
}

// empty reports whether a Store holds none of the entries, as a Secret that was installed to be
// filled.
func empty(entries map[string][]byte) bool {
	for _, name := range folderEntries {
		if len(entries[name]) > 0 {
			return false
		}
	}
	return true
}

// take starts to serve key material.
func (o *Own) take(ctx context.Context, e keyMaterial) {
	o.last = e
	// The endpoints need both, and wait for the next change while the key is absent. So the key is
	// not read between the change and its own assignment.
	o.peer.Lock()
	changed := o.swap(e.held())
	o.peer.key = bytes.Clone(e.peers)
	o.peer.Unlock()
	if changed {
		tell(ctx, o.config.Log, o.Source)
	}
}

// follow calls refresh at once and then periodically until ctx ends. It logs each distinct error
// once.
func follow(ctx context.Context, s *Source, log *slog.Logger, refresh func(context.Context) error) {
	const soon = time.Second
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := refresh(ctx); err != nil && ctx.Err() == nil && s.keep(err) {
			log.LogAttrs(ctx, slog.LevelError, "certificate update failed", slog.Any("error", err))
		}
		if s.Ready() == nil {
			timer.Reset(Interval)
			continue
		}
		timer.Reset(soon)
	}
}

// tell logs the new certificate.
func tell(ctx context.Context, log *slog.Logger, s *Source) {
	log.LogAttrs(ctx, slog.LevelInfo, "serving a new certificate", slog.Time("expires", s.Expires()))
}
