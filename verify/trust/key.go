package trust

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// PublicKey is a key that passed NewPublicKey's checks. It verifies signatures as sigstore's
// signature.Verifier does.
type PublicKey struct {
	verifier
	// Fingerprint is the SHA-256 of the PKIX form in hexadecimal.
	Fingerprint string
	// Hint is the same hash in base64, as cosign names a key in a bundle.
	Hint string
	// PEM is the PKIX form.
	PEM []byte
}

var _ root.TimeConstrainedVerifier = (*PublicKey)(nil)

// ValidAtTime is always true: verify.Authority checks the validity period, and reports it with a
// code of its own instead of a bad signature.
func (*PublicKey) ValidAtTime(time.Time) bool { return true }

// NewPublicKey checks the kind and strength of a key: ECDSA on P-256, P-384 or P-521, RSA of at
// least 2048 bits, or Ed25519. The digest algorithm is sha224, sha256, sha384 or sha512. Without
// one, the algorithm that belongs to the key's curve is accepted and so is sha256, because cosign
// 2 signs with the latter whatever the curve. Ed25519 has its own.
func NewPublicKey(key crypto.PublicKey, hash string) (*PublicKey, error) {
	if err := checkStrength(key); err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(der)
	hashes, err := hashesFor(key, hash)
	if err != nil {
		return nil, err
	}
	public := &PublicKey{
		verifier:    verifier{key: key},
		Fingerprint: hex.EncodeToString(sum[:]),
		Hint:        base64.StdEncoding.EncodeToString(sum[:]),
		PEM:         pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
	}
	for _, h := range hashes {
		v, err := signature.LoadVerifier(key, h)
		if err != nil {
			return nil, fmt.Errorf("public key: %w", err)
		}
		public.tries = append(public.tries, v)
	}
	return public, nil
}

// ParsePublicKey reads one PEM block that holds a public key in PKIX form, and
// applies NewPublicKey's checks. Several blocks are refused: a list of keys is
// a list of authorities, which the policy dialects expand.
func ParsePublicKey(text []byte, hash string) (*PublicKey, error) {
	key, err := parsePEMKey(text)
	if err != nil {
		return nil, err
	}
	return NewPublicKey(key, hash)
}

func parsePEMKey(text []byte) (crypto.PublicKey, error) {
	if len(text) > MaxPEM {
		return nil, fmt.Errorf("public key: %d bytes are more than the bound of %d", len(text), MaxPEM)
	}
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, errors.New(`public key: no PEM block; want "-----BEGIN PUBLIC KEY-----" (write one with: cosign public-key --key KEY)`)
	}
	if more, _ := pem.Decode(rest); more != nil {
		return nil, errors.New("public key: more than one PEM block; write one authority for each key")
	}
	if len(bytes.TrimSpace(rest)) != 0 {
		return nil, errors.New("public key: there is text after the PEM block")
	}
	switch block.Type {
	case "PUBLIC KEY", "RSA PUBLIC KEY":
		key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
		if err != nil {
			return nil, fmt.Errorf("public key: want ECDSA on P-256, P-384 or P-521, RSA of at least %d bits, or Ed25519, in PKIX form, or RSA in that of PKCS #1: %w", minRSA, err)
		}
		return key, nil
	case "CERTIFICATE":
		return nil, errors.New("public key: this is a certificate; give it as one, so that its chain and validity are checked")
	default:
		return nil, fmt.Errorf("public key: the PEM block is %q, want %q", block.Type, "PUBLIC KEY")
	}
}

func checkStrength(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
		return fmt.Errorf("public key: the curve %s is not supported; use P-256, P-384 or P-521", k.Curve.Params().Name)
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSA {
			return fmt.Errorf("public key: RSA of %d bits is too short; use at least %d", bits, minRSA)
		}
		if err := limits.Key(k); err != nil {
			return fmt.Errorf("public key: %w", err)
		}
		return nil
	case ed25519.PublicKey:
		return nil
	default:
		return fmt.Errorf("public key: a key %s; use ECDSA, RSA or Ed25519", kindOf(key))
	}
}

func hashesFor(key crypto.PublicKey, name string) ([]crypto.Hash, error) {
	switch name {
	case "sha224":
		return []crypto.Hash{crypto.SHA224}, nil
	case "sha256":
		return []crypto.Hash{crypto.SHA256}, nil
	case "sha384":
		return []crypto.Hash{crypto.SHA384}, nil
	case "sha512":
		return []crypto.Hash{crypto.SHA512}, nil
	case "":
	default:
		return nil, fmt.Errorf("digest algorithm %q is not supported; use sha224, sha256, sha384 or sha512", name)
	}
	if k, ok := key.(*ecdsa.PublicKey); ok {
		switch k.Curve {
		case elliptic.P384():
			return []crypto.Hash{crypto.SHA384, crypto.SHA256}, nil
		case elliptic.P521():
			return []crypto.Hash{crypto.SHA512, crypto.SHA256}, nil
		}
	}
	return []crypto.Hash{crypto.SHA256}, nil
}

// UsualHash returns the digest algorithm that belongs to a key, which is the only one in
// Sigstore's bundles; empty for Ed25519, which has its own.
func UsualHash(key crypto.PublicKey) string {
	if _, is := key.(ed25519.PublicKey); is {
		return ""
	}
	hashes, err := hashesFor(key, "")
	if err != nil {
		return ""
	}
	return map[crypto.Hash]string{crypto.SHA256: "sha256", crypto.SHA384: "sha384", crypto.SHA512: "sha512"}[hashes[0]]
}

// verifier accepts a signature if one of its tries does. All are for the same key, with different
// digest algorithms.
type verifier struct {
	key   crypto.PublicKey
	tries []signature.Verifier
}

// PublicKey implements signature.PublicKeyProvider.
func (v verifier) PublicKey(...signature.PublicKeyOption) (crypto.PublicKey, error) {
	return v.key, nil
}

// VerifySignature implements signature.Verifier.
func (v verifier) VerifySignature(sig, message io.Reader, opts ...signature.VerifyOption) error {
	if len(v.tries) == 1 {
		return v.tries[0].VerifySignature(sig, message, opts...)
	}
	sigBytes, err := io.ReadAll(sig)
	if err != nil {
		return fmt.Errorf("read signature: %w", err)
	}
	var messageBytes []byte
	if message != nil {
		messageBytes, err = io.ReadAll(message)
		if err != nil {
			return fmt.Errorf("read message: %w", err)
		}
	}
	var errs []error
	for _, try := range v.tries {
		err := try.VerifySignature(bytes.NewReader(sigBytes), bytes.NewReader(messageBytes), opts...)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// IsEd25519 reports whether signatures by the key need the signed bytes, and not only their
// digest.
func (v verifier) IsEd25519() bool {
	_, is := v.key.(ed25519.PublicKey)
	return is
}
