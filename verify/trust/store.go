package trust

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/internal/tufclient"
)

// Options configure the trust of a Store. The zero value is the embedded public-good root,
// without network.
type Options struct {
	// TrustedRoot is a trusted_root.json that replaces the public-good one, at most MaxRoot
	// bytes.
	TrustedRoot []byte
	// Private is the alternative to TrustedRoot.
	Private Private
	// TUF is the repository of newer roots; nil disables refreshes.
	TUF *TUF
	// Secrets looks up k8s:// keys; nil means that there is no cluster.
	Secrets Secrets
	// KMS looks up keys by URI; nil means none.
	KMS KMS
	// KeyInterval is how long a looked-up key is used before it is looked up
	// again; zero means DefaultKeyInterval. A key that cannot be looked up again
	// is used for 24 intervals at most.
	KeyInterval time.Duration
	// Retired are the keys that are no longer accepted.
	Retired []Retired
	// RetiredIdentities are those that are bounded in time.
	RetiredIdentities []verify.RetiredIdentity
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store holds the current Snapshot and replaces it. It is safe for concurrent
// use.
type Store struct {
	tuf     *TUF
	client  *tufclient.Client // of tuf
	now     func() time.Time
	keys    *keyring
	current atomic.Pointer[Snapshot]

	mu     sync.Mutex
	status Status
}

// Status describes how fresh the trust is.
type Status struct {
	// Origin is the source of the current root.
	Origin string
	// Generation is the current snapshot's.
	Generation string
	// Loaded is when the current root was loaded or last confirmed.
	Loaded time.Time
	// Tried is the time of the last refresh attempt; zero if there was none.
	Tried time.Time
	// Err is the error of the last refresh; nil after a success.
	Err error
	// Stale lists failed look-ups of keys; the old keys stay in use.
	Stale []error
}

// New returns a Store. It does not parse the root (Snapshot.Check does) and
// opens no connection.
func New(o Options) (*Store, error) {
	if o.KeyInterval < 0 {
		return nil, fmt.Errorf("trust: key interval %s is negative", o.KeyInterval)
	}
	updates, err := o.TUF.checked()
	if err != nil {
		return nil, err
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	from, err := sourceOf(o)
	if err != nil {
		return nil, err
	}
	gone, err := newRetired(o.Retired)
	if err != nil {
		return nil, err
	}
	if err := verify.ValidateRetired(o.RetiredIdentities); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	s := &Store{tuf: updates, now: now, keys: &keyring{
		secrets: o.Secrets, kms: o.KMS, retired: gone, identities: o.RetiredIdentities, now: now,
		interval: cmp.Or(o.KeyInterval, DefaultKeyInterval),
		known:    make(map[string]knownKey),
	}}
	if updates != nil {
		s.client = updates.client()
	}
	s.swap(from)
	s.remember()
	return s, nil
}

// Snapshot returns the current trust.
func (s *Store) Snapshot() *Snapshot { return s.current.Load() }

// Status returns how fresh the trust is.
func (s *Store) Status() Status {
	s.mu.Lock()
	status := s.status
	s.mu.Unlock()
	status.Stale = s.keys.stale()
	return status
}

// swap makes a root the current one. An equal root keeps its snapshot, with everything that was
// composed from it.
func (s *Store) swap(from source) {
	next := newSnapshot(from, s.keys)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.current.Load(); old == nil || old.generation != next.generation {
		s.current.Store(next)
		s.status.Generation = next.generation
	}
	s.status.Origin, s.status.Loaded, s.status.Err = from.origin, s.now(), nil
}

// Refresh fetches the trusted root by TUF, immediately and then at TUF's interval, until ctx
// ends; it blocks. After a failure the old snapshot stays, Status reports the error, and failed
// is called with it unless it is nil. Without TUF, Refresh returns an error immediately.
func (s *Store) Refresh(ctx context.Context, failed func(error)) error {
	if s.tuf == nil {
		return errOffline
	}
	ticker := time.NewTicker(cmp.Or(s.tuf.Interval, DefaultRootInterval))
	defer ticker.Stop()
	for {
		if err := s.RefreshOnce(ctx); err != nil && failed != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// RefreshOnce fetches the trusted root by TUF and makes it the current one. After a failure the
// old one stays.
func (s *Store) RefreshOnce(ctx context.Context) error {
	if s.tuf == nil {
		return errOffline
	}
	from, err := s.fetch(ctx)
	s.mu.Lock()
	s.status.Tried, s.status.Err = s.now(), err
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.swap(from)
	return s.keep(from)
}

func (s *Store) fetch(ctx context.Context) (source, error) {
	ctx, cancel := context.WithTimeout(ctx, rootTimeout)
	defer cancel()
	text, err := s.client.Fetch(ctx)
	if err != nil {
		return source{}, fmt.Errorf("refresh the trusted root from %s: %w", s.tuf.URL, err)
	}
	from, err := jsonSource(s.tuf.origin(), text)
	if err != nil {
		return source{}, err
	}
	if _, err := from.parse(); err != nil {
		return source{}, errors.Join(errors.New("the refreshed trusted root is not used"), err)
	}
	return from, nil
}
