package vsa

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Key signs summaries: a key from a file (ParseKey), or one in a key management service.
type Key interface {
	// Sign signs a message, and returns the public key that verifies the signature.
	Sign(ctx context.Context, message []byte) (signature []byte, public crypto.PublicKey, err error)
}

// ParseKey parses a private key: cosign's, encrypted by a password, or PKCS #8 without one. It
// accepts the kinds and strengths of trust.NewPublicKey.
func ParseKey(text, password []byte) (Key, error) {
	if len(text) > limit.MaxKeyFile {
		return nil, fmt.Errorf("private key: %d bytes are more than the bound of %d", len(text), limit.MaxKeyFile)
	}
	block, rest := pem.Decode(text)
	if block == nil || len(bytes.TrimSpace(rest)) != 0 {
		return nil, errors.New("private key: want one PEM block, as cosign generate-key-pair writes it")
	}
	der := block.Bytes
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		var err error
		der, err = encrypted.Decrypt(block.Bytes, password)
		if err != nil {
			return nil, errors.New("private key: it cannot be decrypted; the password is wrong, or the file is damaged")
		}
	case "PRIVATE KEY":
	default:
		return nil, fmt.Errorf("private key: the PEM block is %q; want one of cosign, or PKCS #8 (openssl pkcs8 -topk8 -nocrypt)", block.Type)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, errors.New("private key: its algorithm does not sign: want ECDSA, Ed25519 or RSA")
	}
	return newFileKey(signer)
}

// fileKey is a private key in memory.
type fileKey struct {
	signature.Signer
	public crypto.PublicKey
}

func newFileKey(signer crypto.Signer) (*fileKey, error) {
	public := signer.Public()
	if _, err := trust.NewPublicKey(public, ""); err != nil {
		return nil, fmt.Errorf("private key: its %w", err)
	}
	hash := map[string]crypto.Hash{"sha384": crypto.SHA384, "sha512": crypto.SHA512}[trust.UsualHash(public)]
	if hash == 0 {
		hash = crypto.SHA256 // Ed25519 has a fixed hash, and takes none
	}
	loaded, err := signature.LoadSigner(signer, hash)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	return &fileKey{loaded, public}, nil
}

// Sign implements Key.
func (k *fileKey) Sign(_ context.Context, message []byte) ([]byte, crypto.PublicKey, error) {
	signed, err := k.SignMessage(bytes.NewReader(message))
	return signed, k.public, err
}
