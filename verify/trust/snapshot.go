package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify"
)

// Snapshot is the trust at one moment. It is immutable and safe for concurrent use; a request
// uses a single one throughout.
type Snapshot struct {
	generation string
	source     source
	keys       *keyring

	mu            sync.Mutex
	materials     map[string]*memo
	materialBytes int // of their authorities
}

// memo is a material that is composed once.
type memo struct {
	compose func() (*Material, error)
}

func newSnapshot(s source, keys *keyring) *Snapshot {
	sum := sha256.Sum256(s.canonical)
	return &Snapshot{
		generation: hex.EncodeToString(sum[:]),
		source:     s,
		keys:       keys,
		materials:  make(map[string]*memo),
	}
}

// Generation is the SHA-256 of the canonical trust content in hexadecimal. Equal content has an
// equal generation wherever it was loaded. Looked-up keys are not part of it: they are part of
// the authority's hash, once Resolve has filled them in.
func (s *Snapshot) Generation() string { return s.generation }

// Origin describes the source of the trusted root, for messages.
func (s *Snapshot) Origin() string { return s.source.origin }

// Check parses the trusted root now, so that a broken root is found at start-up and not with the
// first authority that needs it.
func (s *Snapshot) Check() error {
	_, err := s.source.parse()
	return err
}

// Resolve returns the authority with the key that its reference currently resolves to, and the
// end of that key if it is retired, and the retired identities if it names no key. Any other authority is returned unchanged. A failing look-up
// is an error, and never a verify.Rejection.
func (s *Snapshot) Resolve(ctx context.Context, authority verify.Authority) (verify.Authority, error) {
	if authority.Key == nil {
		authority.RetiredIdentities = s.keys.identities
	}
	if authority.Key == nil || authority.Key.Ref == "" {
		return s.keys.retired.bound(authority), nil
	}
	pem, err := s.keys.get(ctx, authority.Key.Ref)
	if err != nil {
		return verify.Authority{}, fmt.Errorf("authority %s: %w", authority.Name, err)
	}
	key := *authority.Key
	key.PEM = pem
	authority.Key = &key
	return s.keys.retired.bound(authority), nil
}

// Material composes the trust for the authority's signatures. The authority must be resolved. An
// error means that trust is missing or broken, and is never a verify.Rejection.
func (s *Snapshot) Material(authority verify.Authority) (*Material, error) {
	if err := authority.Validate(); err != nil {
		return nil, err
	}
	hash, err := authority.Hash()
	if err != nil {
		return nil, err
	}
	material, err := s.memo(hash, authority).compose()
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", authority.Name, err)
	}
	return material, nil
}

func (s *Snapshot) memo(hash string, authority verify.Authority) *memo {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.materials[hash]; ok {
		return known
	}
	s.materialBytes += authority.Size()
	if len(s.materials) >= maxMaterials || s.materialBytes > maxMaterialBytes {
		clear(s.materials) // composing again is cheap
		s.materialBytes = authority.Size()
	}
	made := &memo{compose: sync.OnceValues(func() (*Material, error) {
		c := composer{authority: authority, root: s.rootFor(authority)}
		return c.compose()
	})}
	s.materials[hash] = made
	return made
}

// rootFor returns the authority's own root, or the snapshot's.
func (s *Snapshot) rootFor(authority verify.Authority) func() (root.TrustedMaterial, error) {
	if len(authority.TrustedRoot) == 0 {
		return s.source.parse
	}
	return sync.OnceValues(func() (root.TrustedMaterial, error) {
		return parseRoot("of the authority", authority.TrustedRoot)
	})
}
