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

// Authority is a signer that a policy trusts, and the terms of that trust. Exactly one of Key,
// Keyless, Certificate and Notation is set. One signature must meet every term.
type Authority struct {
	// Name is the authority's location in the policy, for messages; it is not part of the hash.
	Name string `json:"-"`

	Key         *Key         `json:"key,omitempty"`
	Keyless     *Keyless     `json:"keyless,omitempty"`
	Certificate *Certificate `json:"certificate,omitempty"`
	Notation    *Notation    `json:"notation,omitempty"`

	// Formats are the accepted formats; empty accepts every format that supports this kind of
	// authority.
	Formats []attest.Format `json:"formats,omitempty"`
	// Annotations are required in the signed payload.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Log holds the requirements on transparency log entries.
	Log Log `json:"log"`
	// Timestamp holds the requirements on RFC 3161 timestamps.
	Timestamp Timestamp `json:"timestamp"`
	// TrustedRoot is a trusted_root.json that replaces the gateway's own.
	TrustedRoot []byte `json:"trustedRoot,omitempty"`
	// NotBefore and NotAfter bound the trusted signing time (from the log or a timestamp
	// authority); zero means unbounded. A signature without trusted time never meets a bound.
	NotBefore time.Time `json:"notBefore,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	// Retired maps the fingerprints of retired keys to the end of their validity, for authorities
	// that certificates identify. A signature by such a key after that time is rejected.
	// trust.Snapshot.Resolve fills it in where the authority names no key.
	Retired map[string]time.Time `json:"retired,omitempty"`
	// RetiredIdentities bound the identities of short-lived certificates, for authorities that certificates
	// identify (Within). trust.Snapshot.Resolve fills it in where the authority names no key.
	RetiredIdentities []RetiredIdentity `json:"retiredIdentities,omitempty"`
	// MaxAge bounds the reuse of a cached fact, so that a deleted signature stops counting. Zero
	// means the gate's default; a negative value disables the cache.
	MaxAge time.Duration `json:"maxAge,omitempty"`
}

// Key is a public key, inline or by reference.
type Key struct {
	// Ref is the key as the policy gives it: PEM, a KMS URI (awskms://, azurekms://, gcpkms://,
	// hashivault://) or k8s://namespace/secret.
	Ref string `json:"-"`
	// PEM is the key that Ref currently resolves to, in PKIX form. The verifiers read only this
	// field; trust.Snapshot.Resolve fills it in.
	PEM []byte `json:"pem"`
	// Hash is the digest algorithm of the signature: sha224, sha256, sha384 or
	// sha512; empty means sha256.
	Hash string `json:"hash,omitempty"`
}

// Keyless is the identity in a certificate from an authority of short-lived certificates
// (Fulcio).
type Keyless struct {
	// Identities of which one must match. Empty is invalid: it would trust every identity that
	// the certificate authority has certified.
	Identities []Identity `json:"identities"`
	// Extensions must all match, by Fulcio's object identifiers.
	Extensions []Extension `json:"extensions,omitempty"`
	// Roots are PEM certificates that replace the trusted root's authorities.
	Roots []byte `json:"roots,omitempty"`
	CT    CT     `json:"ct"`
}

// Certificate is a signing certificate, or the chain that a signing certificate must lead to.
type Certificate struct {
	// Leaf is the required signing certificate in PEM; empty accepts any that leads to Chain.
	Leaf []byte `json:"leaf,omitempty"`
	// Chain is the intermediates and the root in PEM, in any order. With Leaf, the chain must
	// verify the leaf. An empty Chain with Leaf trusts the leaf alone.
	Chain []byte `json:"chain,omitempty"`
	// Hash has the meaning of Key.Hash.
	Hash string `json:"hash,omitempty"`
	CT   CT     `json:"ct"`
}

// CT holds the requirements on certificate transparency.
type CT struct {
	// Ignore accepts certificates without a signed certificate timestamp.
	Ignore bool `json:"ignore,omitempty"`
	// Keys are PEM public keys that replace the trusted root's logs.
	Keys []byte `json:"keys,omitempty"`
}

// Log holds the requirements on a transparency log. Verification is offline: the entry must be
// stored with the signature.
type Log struct {
	// Ignore accepts signatures without an entry.
	Ignore bool `json:"ignore,omitempty"`
	// Keys are PEM public keys that replace the trusted root's logs.
	Keys []byte `json:"keys,omitempty"`
	// Root is a trusted_root.json. Its logs, with their periods of validity, replace those of
	// the authority's trusted root. URL does not select among them.
	Root []byte `json:"root,omitempty"`
	// URL selects one log of the trusted root; empty means any of them. It is never contacted.
	URL string `json:"url,omitempty"`
}

// Timestamp holds the requirements on timestamps (RFC 3161).
type Timestamp struct {
	// Required refuses signatures without a timestamp.
	Required bool `json:"required,omitempty"`
	// Chain is the timestamp authority's certificates in PEM; it replaces the trusted root's
	// authorities.
	Chain []byte `json:"chain,omitempty"`
	// Root is a trusted_root.json. Its timestamp authorities, with their periods of validity,
	// replace those of the authority's trusted root.
	Root []byte `json:"root,omitempty"`
}

// Notation is one scope of a Notary Project trust policy.
type Notation struct {
	// CA, SigningAuthority and TSA are the trust stores, in PEM.
	CA               []byte `json:"ca,omitempty"`
	SigningAuthority []byte `json:"signingAuthority,omitempty"`
	TSA              []byte `json:"tsa,omitempty"`
	// Identities are trusted identities ("x509.subject: C=..., O=..."), or "*". Empty means "*":
	// every signer with a chain to the trust stores.
	Identities []string `json:"identities,omitempty"`
	// Level maps each check to an action; the zero value is strict.
	Level Level `json:"level"`
}

// entryBytes is about the memory of an entry of a list or map, without its texts.
const entryBytes = 64

// Size returns about how much memory the authority takes, in bytes: its keys and certificates, and all that
// a policy may repeat or make long.
func (a Authority) Size() int {
	size := len(a.TrustedRoot) + len(a.Log.Keys) + len(a.Log.Root) + len(a.Timestamp.Chain) + len(a.Timestamp.Root)
	for name, value := range a.Annotations {
		size += entryBytes + len(name) + len(value)
	}
	for fingerprint := range a.Retired {
		size += entryBytes + len(fingerprint)
	}
	for _, r := range a.RetiredIdentities {
		size += entryBytes + r.Identity.Issuer.Size() + r.Identity.Subject.Size()
	}
	if a.Key != nil {
		size += len(a.Key.Ref) + len(a.Key.PEM)
	}
	if a.Keyless != nil {
		size += len(a.Keyless.Roots) + len(a.Keyless.CT.Keys)
		for _, identity := range a.Keyless.Identities {
			size += entryBytes + identity.Issuer.Size() + identity.Subject.Size()
		}
		for _, extension := range a.Keyless.Extensions {
			size += entryBytes + len(extension.OID) + len(extension.Name) + extension.Value.Size()
		}
	}
	if a.Certificate != nil {
		size += len(a.Certificate.Leaf) + len(a.Certificate.Chain) + len(a.Certificate.CT.Keys)
	}
	if a.Notation != nil {
		size += len(a.Notation.CA) + len(a.Notation.SigningAuthority) + len(a.Notation.TSA)
		for _, identity := range a.Notation.Identities {
			size += entryBytes + len(identity)
		}
	}
	return size
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

// CT returns the requirements on certificate transparency: none where no certificate of Sigstore's formats
// identifies the signer.
func (a Authority) CT() CT {
	switch {
	case a.Keyless != nil:
		return a.Keyless.CT
	case a.Certificate != nil:
		return a.Certificate.CT
	default:
		return CT{Ignore: true}
	}
}

// Validate refuses authorities that are incomplete or contradictory, or that would trust every
// signer.
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

// Hash identifies the authority by its content: resolved key bytes and every term, without its
// name and the reference of the key. An unresolved key has no hash, since two versions of it
// would share one.
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
