package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/attest"
)

// Authority is somebody whom a policy would believe, and on what terms. Exactly
// one of Key, Keyless, Certificate and Notation is set. Every term must be met
// by the same signature.
type Authority struct {
	// Name says where the policy names the authority, for messages; it is not
	// part of the hash.
	Name string `json:"-"`

	Key         *Key         `json:"key,omitempty"`
	Keyless     *Keyless     `json:"keyless,omitempty"`
	Certificate *Certificate `json:"certificate,omitempty"`
	Notation    *Notation    `json:"notation,omitempty"`

	// Formats that are accepted; none means every format the kind of authority
	// can be proved in.
	Formats []attest.Format `json:"formats,omitempty"`
	// Annotations that the signature must carry in its signed payload.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Log says what is asked of a transparency log.
	Log Log `json:"log"`
	// Timestamp says what is asked of timestamp authorities.
	Timestamp Timestamp `json:"timestamp"`
	// TrustedRoot is a trusted_root.json to use in place of the gateway's own.
	TrustedRoot []byte `json:"trustedRoot,omitempty"`
	// NotBefore and NotAfter bound the trusted signing time (the log's or a
	// timestamp authority's); zero means unbounded. A signature without trusted
	// time never meets a bound.
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	// Retired are the ends of keys that somebody's certificate may be for, by the
	// fingerprint: what such a key signed later is not believed. trust.Snapshot.Resolve
	// fills them in where the authority names no key.
	Retired map[string]time.Time `json:"retired,omitempty"`
	// MaxAge is how long a fact may be believed without looking again, so that a
	// deleted signature stops counting; zero means the gate's default, negative
	// that it is never taken from memory.
	MaxAge time.Duration `json:"maxAge,omitempty"`
}

// Key is a public key, given or to be looked up.
type Key struct {
	// Ref is what the policy says: PEM, a KMS URI (awskms://, azurekms://,
	// gcpkms://, hashivault://) or k8s://namespace/secret.
	Ref string `json:"-"`
	// PEM is the key that Ref stands for now, in PKIX form. The verifiers read
	// only this; trust.Snapshot.Resolve fills it in.
	PEM []byte `json:"pem"`
	// Hash is the digest algorithm of the signature: sha224, sha256, sha384 or
	// sha512; empty means sha256.
	Hash string `json:"hash,omitempty"`
}

// Keyless is a certificate from a certificate authority of short-lived
// certificates (Fulcio), by the identity in it.
type Keyless struct {
	// Identities of which one must match; never empty, for "anybody whom the
	// certificate authority knows" is not an authority.
	Identities []Identity `json:"identities"`
	// Extensions that must all match, by Fulcio's object identifiers.
	Extensions []Extension `json:"extensions,omitempty"`
	// Roots are PEM certificates in place of the trusted root's authorities.
	Roots []byte `json:"roots,omitempty"`
	CT    CT     `json:"ct"`
}

// Certificate is a signing certificate that the policy gives, or the chain that
// a signing certificate must lead to.
type Certificate struct {
	// Leaf is the PEM certificate that must have signed; empty means any that
	// leads to Chain.
	Leaf []byte `json:"leaf,omitempty"`
	// Chain is PEM: intermediates and the root, in any order. With Leaf it must
	// verify it; empty with Leaf means that the leaf alone is trusted.
	Chain []byte `json:"chain,omitempty"`
	// Hash as in Key.
	Hash string `json:"hash,omitempty"`
	CT   CT     `json:"ct"`
}

// CT says what is asked of certificate transparency logs.
type CT struct {
	// Ignore accepts certificates without a signed certificate timestamp.
	Ignore bool `json:"ignore,omitempty"`
	// Keys are PEM public keys in place of the trusted root's logs.
	Keys []byte `json:"keys,omitempty"`
}

// Log says what is asked of a transparency log. Nothing is ever asked online:
// the entry must travel with the signature.
type Log struct {
	// Ignore accepts signatures without an entry.
	Ignore bool `json:"ignore,omitempty"`
	// Keys are PEM public keys in place of the trusted root's logs.
	Keys []byte `json:"keys,omitempty"`
	// URL selects one log of the trusted root; empty means any of them. It is
	// never contacted.
	URL string `json:"url,omitempty"`
}

// Timestamp says what is asked of timestamp authorities (RFC 3161).
type Timestamp struct {
	// Required refuses signatures without a timestamp.
	Required bool `json:"required,omitempty"`
	// Chain is PEM: the timestamp authority's certificates in place of the
	// trusted root's.
	Chain []byte `json:"chain,omitempty"`
}

// Notation is what the Notary Project's trust policy says of one scope.
type Notation struct {
	// CA, SigningAuthority and TSA are the trust stores, in PEM.
	CA               []byte `json:"ca,omitempty"`
	SigningAuthority []byte `json:"signingAuthority,omitempty"`
	TSA              []byte `json:"tsa,omitempty"`
	// Identities are trusted identities ("x509.subject: C=..., O=..."), or "*".
	// None means "*": whoever the stores vouch for.
	Identities []string `json:"identities,omitempty"`
	// Level is the table of check to action; the zero value is strict.
	Level Level `json:"level"`
}

// Kind returns "key", "keyless", "certificate" or "notation".
func (a Authority) Kind() string {
	switch {
	case a.Key != nil:
		return "key"
	case a.Keyless != nil:
		return "keyless"
	case a.Certificate != nil:
		return "certificate"
	case a.Notation != nil:
		return "notation"
	default:
		return ""
	}
}

// Validate refuses authorities that mean nothing, or more than was said.
func (a Authority) Validate() error {
	set := 0
	for _, is := range []bool{a.Key != nil, a.Keyless != nil, a.Certificate != nil, a.Notation != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("authority %s: want exactly one of key, keyless, certificate and notation, got %d", a.Name, set)
	}
	if !a.NotAfter.IsZero() && !a.NotBefore.IsZero() && !a.NotBefore.Before(a.NotAfter) {
		return fmt.Errorf("authority %s: notBefore %s is not before notAfter %s", a.Name, a.NotBefore, a.NotAfter)
	}
	switch {
	case a.Key != nil && a.Key.Ref == "" && len(a.Key.PEM) == 0:
		return fmt.Errorf("authority %s: the key is empty", a.Name)
	case a.Keyless != nil:
		return a.validateKeyless()
	case a.Certificate != nil && len(a.Certificate.Leaf) == 0 && len(a.Certificate.Chain) == 0:
		return fmt.Errorf("authority %s: want a certificate or a chain", a.Name)
	case a.Notation != nil && len(a.Notation.CA) == 0 && len(a.Notation.SigningAuthority) == 0:
		return fmt.Errorf("authority %s: want certificates of a certificate authority or signing authority", a.Name)
	}
	return nil
}

func (a Authority) validateKeyless() error {
	if len(a.Keyless.Identities) == 0 {
		return fmt.Errorf("authority %s: keyless without an identity would trust everybody", a.Name)
	}
	for i, identity := range a.Keyless.Identities {
		if identity.Issuer.IsZero() || identity.Subject.IsZero() {
			return fmt.Errorf("authority %s: identity %d: want both an issuer and a subject", a.Name, i)
		}
	}
	return nil
}

// Hash names the authority by its content: resolved key bytes and every term,
// but neither its name nor the reference a key was looked up by. An unresolved
// key has no hash, since two versions of it would share one.
func (a Authority) Hash() (string, error) {
	if a.Key != nil && len(a.Key.PEM) == 0 {
		return "", errors.New("hash of authority " + a.Name + ": its key is not resolved yet")
	}
	canonical, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("hash of authority %s: %w", a.Name, err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}
