package redis

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/chacha20poly1305"
)

const (
	// minKey is the least length of a key of the replicas in bytes, that of the hash; maxFormer
	// bounds the keys that are still accepted, since each needs requests under its own names.
	minKey, maxFormer = sha256.Size, 2
	// version is the first byte of an entry. It is in the names too, so that two releases share a
	// server without finding each other's entries.
	version = 1
	// headBytes are version and nonce; timesBytes the two times, in milliseconds since the Unix
	// epoch; overhead is the total size that an entry adds to its value.
	headBytes  = 1 + chacha20poly1305.NonceSizeX
	timesBytes = 8 + 8
	overhead   = headBytes + timesBytes + chacha20poly1305.Overhead
	// maxSkew bounds the clock skew between two replicas.
	maxSkew = 30 * time.Second
)

// sealer seals and opens entries under one key of the replicas.
//
// The seal is XChaCha20-Poly1305. A MAC would prevent forgery, but an entry reveals a tenant's
// images and their signers, and hiding these costs nothing more. The nonce is long enough to be
// random without a limit. With AES-GCM, a busy set of replicas, which all seal under one key,
// could exhaust the key (2^32 entries) in weeks.
type sealer struct {
	names []byte
	aead  cipher.AEAD
}

// newSealer derives a key for each purpose, so that a result for one purpose is useless for the
// other, and for other uses of the replicas' key.
func newSealer(key []byte) (*sealer, error) {
	if len(key) < minKey {
		return nil, fmt.Errorf("the replicas' key has %d bytes: want at least %d random ones", len(key), minKey)
	}
	names, err := hkdf.Key(sha256.New, key, nil, "quaymaster shared memory names", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("key for names: %w", err)
	}
	values, err := hkdf.Key(sha256.New, key, nil, "quaymaster shared memory values", chacha20poly1305.KeySize)
	if err != nil {
		return nil, fmt.Errorf("key for values: %w", err)
	}
	aead, err := chacha20poly1305.NewX(values)
	if err != nil {
		return nil, fmt.Errorf("key for values: %w", err)
	}
	return &sealer{names: names, aead: aead}, nil
}

// name returns the entry's name for key in the server.
func (s *sealer) name(prefix, key string) string {
	h := hmac.New(sha256.New, s.names)
	h.Write([]byte{version})
	h.Write([]byte(key))
	return prefix + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// seal returns the entry for value under key: version, nonce, and sealed the time of writing, the
// end, and the value.
func (s *sealer) seal(key string, value []byte, written, end time.Time) []byte {
	entry := make([]byte, headBytes, overhead+len(value))
	entry[0] = version
	_, _ = rand.Read(entry[1:]) // never fails: crypto/rand ends the process instead
	plain := make([]byte, 0, timesBytes+len(value))
	plain = binary.BigEndian.AppendUint64(plain, uint64(written.UnixMilli()))
	plain = binary.BigEndian.AppendUint64(plain, uint64(end.UnixMilli()))
	plain = append(plain, value...)
	return s.aead.Seal(entry, entry[1:headBytes], plain, associated(key))
}

// open returns the value of an entry that was sealed for key, is valid at now, and was written at
// most oldest ago; otherwise the reason for its rejection.
func (s *sealer) open(key string, entry []byte, now time.Time, oldest time.Duration) ([]byte, Reason) {
	switch {
	case len(entry) > MaxValue+overhead:
		return nil, TooLarge
	case len(entry) == 0:
		return nil, TooShort
	case entry[0] != version:
		return nil, UnknownVersion
	case len(entry) < overhead:
		return nil, TooShort
	}
	plain, err := s.aead.Open(nil, entry[1:headBytes], entry[headBytes:], associated(key))
	if err != nil {
		return nil, Forged
	}
	written := time.UnixMilli(int64(binary.BigEndian.Uint64(plain)))
	end := time.UnixMilli(int64(binary.BigEndian.Uint64(plain[8:])))
	switch {
	case written.After(now.Add(maxSkew)):
		return nil, Future
	case !now.Before(end) || now.Sub(written) >= oldest:
		return nil, Ended
	}
	return plain[timesBytes:], ""
}

// associated returns data that an entry is bound to without containing it.
func associated(key string) []byte {
	return append([]byte{version}, key...)
}

// ring caches the sealers for the current keys; making one costs more than using it.
type ring struct {
	keys func() (current []byte, former [][]byte)

	mu      sync.Mutex
	raw     [][]byte
	sealers []*sealer
}

// get returns the sealer of the current key, then those of the former ones.
func (r *ring) get() ([]*sealer, error) {
	current, former := r.keys()
	if len(former) > maxFormer {
		return nil, fmt.Errorf("%d former keys: want at most %d", len(former), maxFormer)
	}
	raw := append([][]byte{current}, former...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if same(r.raw, raw) {
		return r.sealers, nil
	}
	made := make([]*sealer, len(raw))
	kept := make([][]byte, len(raw))
	for i, key := range raw {
		s, err := newSealer(key)
		if err != nil {
			return nil, err
		}
		made[i], kept[i] = s, bytes.Clone(key)
	}
	r.raw, r.sealers = kept, made
	return made, nil
}

func same(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !hmac.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// errKeys wraps errors of the current keys.
var errKeys = errors.New("no usable key of the replicas")
