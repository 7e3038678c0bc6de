package verifytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" // SHA-1, SHA-384 and SHA-512 are selectable
	"crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"time"
)

// Algorithm names a kind of key.
type Algorithm string

// The kinds of keys. Generating RSA keys is slow: up to seconds for RSA4096.
const (
	ECDSAP256 Algorithm = "ecdsa-p256"
	ECDSAP384 Algorithm = "ecdsa-p384"
	ECDSAP521 Algorithm = "ecdsa-p521"
	RSA2048   Algorithm = "rsa-2048"
	RSA3072   Algorithm = "rsa-3072"
	RSA4096   Algorithm = "rsa-4096"
	Ed25519   Algorithm = "ed25519"
)

// KeyOptions describes a key and how it signs. The zero value is an ECDSA
// P-256 key that signs SHA-256 digests.
type KeyOptions struct {
	// Algorithm is the kind of key; ECDSAP256 if empty.
	Algorithm Algorithm
	// Hash is SHA-224, SHA-256, SHA-384 or SHA-512, or SHA-1, which verifiers must refuse. If
	// zero it is Sigstore's default for the key: SHA-384 for P-384, SHA-512 for P-521, SHA-256
	// for all others. Ed25519 has none.
	Hash crypto.Hash
	// PSS makes an RSA key sign with RSASSA-PSS instead of PKCS #1 v1.5.
	PSS bool
	// Prehash makes an Ed25519 key sign with Ed25519ph. A keyless signer always does so for
	// message signatures in bundles, as Sigstore's verifiers expect.
	Prehash bool
	// Hint names the key in bundles. If empty it is the same as cosign's: the base64 of the
	// SHA-256 of the public key.
	Hint string
}

// Signer signs, with a key alone ([KeySigner]) or with a certificate ([Sigstore.Keyless]).
type Signer struct {
	key     crypto.Signer
	options KeyOptions
	hint    string

	// For a keyless signer: its certificate, the issuers from the nearest to the root, and a time
	// at which it is valid.
	leaf    *x509.Certificate
	issuers []*x509.Certificate
	time    time.Time
}

// KeySigner makes a key. An unknown algorithm, or an option that the algorithm does not have, is
// an error.
func KeySigner(o KeyOptions) (*Signer, error) {
	if o.Algorithm == "" {
		o.Algorithm = ECDSAP256
	}
	if o.Hash == 0 {
		o.Hash = usualHash(o.Algorithm)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	key, err := newKey(o.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	hint := o.Hint
	if hint == "" {
		sum := sha256.Sum256(publicDER(key.Public()))
		hint = base64.StdEncoding.EncodeToString(sum[:])
	}
	return &Signer{key: key, options: o, hint: hint}, nil
}

// Otherwise returns a signer with the same key and other signing options. It ignores the options'
// algorithm and hint.
func (s *Signer) Otherwise(o KeyOptions) (*Signer, error) {
	o.Algorithm = s.options.Algorithm
	if o.Hash == 0 {
		o.Hash = usualHash(o.Algorithm)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	other := *s
	other.options = o
	return &other, nil
}

// Hint is the name of the key in bundles.
func (s *Signer) Hint() string { return s.hint }

// Hash is the digest algorithm that the signer uses; zero for Ed25519.
func (s *Signer) Hash() crypto.Hash { return s.options.Hash }

// Public is the public key.
func (s *Signer) Public() crypto.PublicKey { return s.key.Public() }

// Private is the private key.
func (s *Signer) Private() crypto.Signer { return s.key }

// PublicPEM is the public key as a PEM block of type PUBLIC KEY.
func (s *Signer) PublicPEM() []byte { return publicPEM(s.key.Public()) }

// PrivatePEM is the private key, unencrypted, as a PEM block of type PRIVATE
// KEY (PKCS #8).
func (s *Signer) PrivatePEM() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(s.key)
	if err != nil {
		return nil, fmt.Errorf("encode the private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Certificate is the certificate of a keyless signer, nil for a bare key.
func (s *Signer) Certificate() *x509.Certificate { return s.leaf }

// CertificatePEM is the certificate of a keyless signer, nil for a bare key.
func (s *Signer) CertificatePEM() []byte {
	if s.leaf == nil {
		return nil
	}
	return certificatesPEM(s.leaf)
}

// ChainPEM is the chain of a keyless signer's issuers, the root last.
func (s *Signer) ChainPEM() []byte { return certificatesPEM(s.issuers...) }

// Sign signs a message.
func (s *Signer) Sign(message []byte) ([]byte, error) {
	return s.sign(message, s.options.Prehash)
}

func (s *Signer) sign(message []byte, prehash bool) ([]byte, error) {
	var o crypto.SignerOpts = s.options.Hash
	hash := s.options.Hash
	switch {
	case s.options.PSS:
		o = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
	case s.options.Algorithm == Ed25519 && prehash:
		hash = crypto.SHA512
		o = &ed25519.Options{Hash: hash}
	}
	if hash != 0 {
		message = sum(hash, message)
	}
	signature, err := s.key.Sign(rand.Reader, message, o)
	if err != nil {
		return nil, fmt.Errorf("sign with a key of type %s: %w", s.options.Algorithm, err)
	}
	return signature, nil
}

func (o KeyOptions) check() error {
	isRSA := o.Algorithm == RSA2048 || o.Algorithm == RSA3072 || o.Algorithm == RSA4096
	switch {
	case o.PSS && !isRSA:
		return fmt.Errorf("key: PSS is for RSA, not for %s", o.Algorithm)
	case o.Prehash && o.Algorithm != Ed25519:
		return fmt.Errorf("key: Prehash is for Ed25519, not for %s", o.Algorithm)
	case o.Algorithm == Ed25519 && o.Hash != 0:
		return fmt.Errorf("key: Ed25519 takes no hash, got %s", o.Hash)
	}
	switch o.Hash {
	case 0, crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512:
		return nil
	}
	return fmt.Errorf("key: hash %s is not one of SHA-1, SHA-224, SHA-256, SHA-384, SHA-512", o.Hash)
}

func usualHash(a Algorithm) crypto.Hash {
	switch a {
	case ECDSAP384:
		return crypto.SHA384
	case ECDSAP521:
		return crypto.SHA512
	case Ed25519:
		return 0
	}
	return crypto.SHA256
}

func newKey(a Algorithm) (crypto.Signer, error) {
	switch a {
	case ECDSAP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ECDSAP384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case ECDSAP521:
		return ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case RSA2048:
		return rsa.GenerateKey(rand.Reader, 2048)
	case RSA3072:
		return rsa.GenerateKey(rand.Reader, 3072)
	case RSA4096:
		return rsa.GenerateKey(rand.Reader, 4096)
	case Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("algorithm %q is not known", a)
}

func sum(h crypto.Hash, message []byte) []byte {
	d := h.New()
	d.Write(message)
	return d.Sum(nil)
}

// publicDER encodes a key of this package; that cannot fail.
func publicDER(key crypto.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(fmt.Sprintf("verifytest: encode a public key: %v", err))
	}
	return der
}

func publicPEM(key crypto.PublicKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER(key)})
}

func certificatesPEM(certificates ...*x509.Certificate) []byte {
	var all []byte
	for _, c := range certificates {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return all
}
