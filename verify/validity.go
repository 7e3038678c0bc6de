package verify

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"time"
)

// Admits decides whether a signature with the given trusted time lies within NotBefore and
// NotAfter. If the signer's key is retired, the time must also precede its end. signer is the
// certificate, nil for a key. The zero time means that no trusted time is available, which meets
// no bound. Admits returns nil, or the reason without its origin.
func (a Authority) Admits(signedAt time.Time, signer *x509.Certificate) *Rejection {
	if end := a.endOf(signer); !end.IsZero() && (a.NotAfter.IsZero() || end.Before(a.NotAfter)) {
		a.NotAfter = end
	}
	if !a.IsBounded(signer) {
		return nil
	}
	reject := &Rejection{Authority: a.Name, Expected: a.validity()}
	switch {
	case signedAt.IsZero():
		reject.Code = NoTimestamp
		reject.Err = fmt.Errorf("the authority is bounded in time, and the signature carries no trusted time of signing")
	case !a.NotBefore.IsZero() && signedAt.Before(a.NotBefore), !a.NotAfter.IsZero() && signedAt.After(a.NotAfter):
		reject.Code = OutsideValidity
		reject.Found = "signed at " + stamp(signedAt)
	default:
		return nil
	}
	return reject
}

// IsBounded reports whether Admits requires a trusted time of a signer.
func (a Authority) IsBounded(signer *x509.Certificate) bool {
	return !a.NotBefore.IsZero() || !a.NotAfter.IsZero() || a.IsRetired(signer)
}

// IsRetired reports whether the key of a certificate was retired.
func (a Authority) IsRetired(signer *x509.Certificate) bool { return !a.endOf(signer).IsZero() }

// endOf returns when the key of a certificate was retired, zero if it was not.
func (a Authority) endOf(signer *x509.Certificate) time.Time {
	if signer == nil || len(a.Retired) == 0 {
		return time.Time{}
	}
	return a.Retired[Fingerprint(signer.PublicKey, signer.RawSubjectPublicKeyInfo)]
}

// Fingerprint is the SHA-256 of a public key in PKIX form, in hexadecimal. written is the
// original encoding, because one key can have several and Go cannot encode every key.
func Fingerprint(key crypto.PublicKey, written []byte) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		der = written
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// validity writes the bounds for messages.
func (a Authority) validity() string {
	text := "signed"
	if !a.NotBefore.IsZero() {
		text += " from " + stamp(a.NotBefore)
	}
	if !a.NotAfter.IsZero() {
		text += " until " + stamp(a.NotAfter)
	}
	return text
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
