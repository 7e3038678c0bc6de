package decisionlog

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Key signs checkpoints: ECDSA on P-256. It is immutable.
type Key struct {
	private *ecdsa.PrivateKey
	id      string
}

// GenerateKey generates a key.
func GenerateKey() (*Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	return newKey(private)
}

// ParseKey parses a key from PEM (PKCS #8, as written by MarshalPEM, or SEC 1).
func ParseKey(text []byte) (*Key, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("decision log: the key is no PEM: want a private key (ECDSA, P-256)")
	}
	if private, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return newKey(private)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decision log: key: %w", err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("decision log: key: want ECDSA on P-256, found another algorithm")
	}
	return newKey(private)
}

func newKey(private *ecdsa.PrivateKey) (*Key, error) {
	id, err := keyID(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	return &Key{private: private, id: id}, nil
}

// keyID is the SHA-256 of the public key in PKIX form.
func keyID(public *ecdsa.PublicKey) (string, error) {
	if public.Curve != elliptic.P256() {
		return "", errors.New("decision log: key: want ECDSA on P-256, found another curve")
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("decision log: key: %w", err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// ID is the SHA-256 of the public key in PKIX form, in hexadecimal.
func (k *Key) ID() string { return k.id }

func (k *Key) sign(text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	return ecdsa.SignASN1(rand.Reader, k.private, sum[:])
}

// MarshalPEM returns the private key (PKCS #8) and the public one (PKIX).
func (k *Key) MarshalPEM() (private, public []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil, nil, fmt.Errorf("decision log: key: %w", err)
	}
	pkix, err := x509.MarshalPKIXPublicKey(&k.private.PublicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("decision log: key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix}), nil
}

// Keys are the public keys that verify checkpoints, by their IDs.
type Keys map[string]*ecdsa.PublicKey

// ParsePublicKeys parses all public keys of a PEM text, at least one.
func ParsePublicKeys(text []byte) (Keys, error) {
	keys := Keys{}
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			break
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("decision log: want public keys (PEM), found %s: %w", block.Type, err)
		}
		public, ok := parsed.(*ecdsa.PublicKey)
		if !ok {
			return nil, errors.New("decision log: key: want ECDSA on P-256, found another algorithm")
		}
		id, err := keyID(public)
		if err != nil {
			return nil, err
		}
		keys[id] = public
	}
	if len(keys) == 0 {
		return nil, errors.New("decision log: there is no public key (PEM) in it")
	}
	return keys, nil
}

// check reports whether a checkpoint is signed by one of the keys.
func (k Keys) check(e *Entry) bool {
	public := k[e.Checkpoint.Key]
	sum := sha256.Sum256(SignedText(e))
	return public != nil && ecdsa.VerifyASN1(public, sum[:], e.Checkpoint.Signature)
}

// ids are the keys' IDs, sorted.
func (k Keys) ids() []string { return slices.Sorted(maps.Keys(k)) }
