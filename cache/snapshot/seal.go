package snapshot

import (
	"bytes"
	"compress/gzip"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// Bounds of parts.
const (
	// MaxPart bounds a part in bytes, against decompression bombs.
	MaxPart = 16 << 20
	// maxSealed bounds a part after compression, which may enlarge it a little, and sealing.
	maxSealed = MaxPart + 1<<20
	// MaxParts bounds the number of parts.
	MaxParts = 64
	// minKey is the least length of a key in bytes.
	minKey = 16
)

// domain separates these seals from other seals under the same key; it changes with the format.
const domain = "quaymaster snapshot 1"

// ErrSealed means that a part was not sealed under this key, or was changed since.
var ErrSealed = errors.New("it was not written by these replicas, or was changed since")

// Sealer seals and opens parts. It is safe for concurrent use.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns a Sealer for the replicas' key, of 16 bytes at least.
func NewSealer(key []byte) (*Sealer, error) {
	if len(key) < minKey {
		return nil, fmt.Errorf("seal snapshots: the key has %d bytes: want %d at least", len(key), minKey)
	}
	own, err := hkdf.Key(sha256.New, key, nil, domain, chacha20poly1305.KeySize)
	if err != nil {
		return nil, fmt.Errorf("seal snapshots: %w", err)
	}
	aead, err := chacha20poly1305.NewX(own)
	if err != nil {
		return nil, fmt.Errorf("seal snapshots: %w", err)
	}
	return &Sealer{aead}, nil
}

// Seal compresses and seals a part.
func (s *Sealer) Seal(part []byte) ([]byte, error) {
	if len(part) > MaxPart {
		return nil, fmt.Errorf("seal a snapshot: a part of %d bytes: want at most %d", len(part), MaxPart)
	}
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(part); err != nil {
		return nil, fmt.Errorf("seal a snapshot: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("seal a snapshot: %w", err)
	}
	nonce := make([]byte, s.aead.NonceSize(), s.aead.NonceSize()+small.Len()+s.aead.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("seal a snapshot: %w", err)
	}
	return s.aead.Seal(nonce, nonce, small.Bytes(), []byte(domain)), nil
}

// Open returns the part that was sealed. An error other than ErrSealed is a defect of the writer.
func (s *Sealer) Open(sealed []byte) ([]byte, error) {
	n := s.aead.NonceSize()
	if len(sealed) < n || len(sealed) > maxSealed {
		return nil, fmt.Errorf("open a snapshot: %w", ErrSealed)
	}
	small, err := s.aead.Open(nil, sealed[:n], sealed[n:], []byte(domain))
	if err != nil {
		return nil, fmt.Errorf("open a snapshot: %w", ErrSealed)
	}
	r, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		return nil, fmt.Errorf("open a snapshot: %w", err)
	}
	part, err := limit.ReadAll(r, MaxPart, "a part of a snapshot")
	if err != nil {
		return nil, fmt.Errorf("open a snapshot: %w", err)
	}
	return part, nil
}
