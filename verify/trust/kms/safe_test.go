package kms_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strconv"
	"sync"
	"testing"
)

// safe is what all the services have inside: keys by name, in versions.
type safe struct {
	mu     sync.Mutex
	keys   map[string][]crypto.Signer // the newest last
	closed map[string]bool            // names that may not be asked for
}

func newSafe() *safe {
	return &safe{keys: map[string][]crypto.Signer{}, closed: map[string]bool{}}
}

// add makes a key, or a further version of it.
func (s *safe) add(t testing.TB, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.put(name, key)
}

func (s *safe) put(name string, key crypto.Signer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[name] = append(s.keys[name], key)
}

// deny makes a key one that the caller may not use.
func (s *safe) deny(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[name] = true
}

// versions returns a key's versions, and whether the caller may use them.
func (s *safe) versions(name string) (keys []crypto.Signer, allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[name], !s.closed[name]
}

// pick returns one version, counted from 1; empty means the newest.
func pick(versions []crypto.Signer, version string) (crypto.Signer, bool) {
	n := len(versions)
	if version != "" && version != "0" {
		var err error
		n, err = strconv.Atoi(version)
		if err != nil {
			return nil, false
		}
	}
	if n < 1 || n > len(versions) {
		return nil, false
	}
	return versions[n-1], true
}

// signDigest signs a digest, as long as it fits the key.
func signDigest(key crypto.Signer, digest []byte) ([]byte, error) {
	if _, is := key.(ed25519.PrivateKey); is {
		return key.Sign(rand.Reader, digest, crypto.Hash(0)) // the message itself
	}
	hashes := map[int]crypto.Hash{32: crypto.SHA256, 48: crypto.SHA384, 64: crypto.SHA512}
	return key.Sign(rand.Reader, digest, hashes[len(digest)])
}

func publicDER(key crypto.Signer) []byte {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		panic(err) // the keys are of our own making
	}
	return der
}

func publicPEM(key crypto.Signer) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER(key)}))
}
