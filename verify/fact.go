package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

// Fact is a verified claim about a digest, for one authority, by one signature that met all of
// the authority's terms.
type Fact struct {
	// Subject is the digest of the claim.
	Subject image.Digest
	Format  attest.Format
	Role    attest.Role
	Signer  Signer
	// Statement is the in-toto statement of an attestation; nil for a signature.
	Statement *attest.Statement
	// Signatures are the SignatureIDs: of the signature, or of all signatures in the statement's envelope,
	// at least one of which verified; none if they are not known.
	Signatures []string
	// Annotations are those in the signed payload.
	Annotations map[string]string
	// Entries are the verified transparency log entries.
	Entries []LogEntry
	// SignedAt is the earliest trusted time of signing; zero if there is none.
	SignedAt time.Time
	// TimeSource is the origin of SignedAt; empty if it is zero or its origin is unknown.
	TimeSource TimeSource
	// Expires bounds the validity of the fact; zero means unbounded. It is the earliest end of
	// the certificates, revocation answers and signature that must stay valid after the time of
	// signing.
	Expires time.Time
	// Notes are failed checks that do not reject the signature.
	Notes  []string
	Origin attest.Origin
}

// Signer identifies the signer: a key or the identity of a certificate.
type Signer struct {
	// ID is equal for all signatures of one identity, whatever term of an authority they met. If it
	// is empty, the other fields identify the signer.
	ID string `json:"-"`
	// Key is the fingerprint of the key that signed, also where a certificate identifies the signer.
	// Thresholds count signatures with the same ID or Key once.
	Key string `json:"-"`
	// KeyFingerprint is the SHA-256 of the PKIX public key in hexadecimal, for
	// keys.
	KeyFingerprint string `json:"keyFingerprint,omitempty"`
	// Subject is the matched subject alternative name of a short-lived
	// certificate, or the subject's distinguished name of any other.
	Subject string `json:"subject,omitempty"`
	// Names are all subject alternative names of the certificate: Subject depends on the authority.
	Names []string `json:"-"`
	// Issuer is the OpenID Connect issuer, or the certificate issuer's name.
	Issuer string `json:"issuer,omitempty"`
	// Extensions are Fulcio's, by their names.
	Extensions map[string]string `json:"extensions,omitempty"`
}

// String returns a short name for tables: the subject, or the key.
func (s Signer) String() string {
	switch {
	case s.Subject != "" && s.Issuer != "":
		return s.Subject + " (" + s.Issuer + ")"
	case s.Subject != "":
		return s.Subject
	case len(s.KeyFingerprint) >= 16:
		return "key " + s.KeyFingerprint[:16]
	default:
		return "key " + s.KeyFingerprint
	}
}

// LogEntry identifies an entry of a transparency log.
type LogEntry struct {
	// LogID is the hexadecimal key identifier of the log.
	LogID string `json:"logID,omitempty"`
	Index int64  `json:"index"`
	// Time is the log's integration time; zero for logs without one (Rekor v2).
	Time time.Time `json:"time,omitzero"`
}

// Code is the reason of a rejection. Codes are a contract: documented, and never reused for
// another meaning.
type Code string

// The reasons of a rejection.
const (
	WrongKey           Code = "wrong-key"           // signed, but not by this key
	WrongIdentity      Code = "wrong-identity"      // certificate of another identity
	WrongExtension     Code = "wrong-extension"     // the right identity, from another workflow
	WrongAnnotation    Code = "wrong-annotation"    // the signed payload lacks an annotation
	WrongDigest        Code = "wrong-digest"        // a valid signature of another image
	WrongPredicate     Code = "wrong-predicate"     // a valid statement of another type
	WrongFormat        Code = "wrong-format"        // the format does not support this authority
	BadSignature       Code = "bad-signature"       // the signature does not match the signed bytes
	Malformed          Code = "malformed"           // the evidence cannot be parsed
	UntrustedChain     Code = "untrusted-chain"     // the certificate does not lead to a trusted root
	ExpiredCertificate Code = "expired-certificate" // not valid at the time of signing
	NoLogEntry         Code = "no-log-entry"        // a log entry is required, and there is none
	BadLogEntry        Code = "bad-log-entry"       // the entry is not from a trusted log, or is for another signature
	NoSCT              Code = "no-sct"              // the certificate lacks a certificate timestamp
	BadSCT             Code = "bad-sct"             // the certificate timestamp is not from a trusted log
	NoTimestamp        Code = "no-timestamp"        // a trusted time is required, and there is none
	BadTimestamp       Code = "bad-timestamp"       // the timestamp is not from a trusted authority, or is for other bytes
	OutsideValidity    Code = "outside-validity"    // signed outside the authority's notBefore and notAfter
	Expired            Code = "expired"             // the signature's expiry time has passed
	TooOld             Code = "too-old"             // signed longer ago than the maximum age of a requirement
	Revoked            Code = "revoked"             // a certificate of the chain is revoked
)

// Rejection is the reason why a piece of evidence does not verify for an authority.
type Rejection struct {
	Code Code
	// Authority is the name of the authority that was tried.
	Authority string
	Origin    attest.Origin
	// Expected and Found describe the nearest miss, where there is one.
	Expected, Found string
	// Err is the cause; may be nil.
	Err error
}

// Error implements error.
func (r *Rejection) Error() string {
	text := string(r.Code)
	if r.Expected != "" || r.Found != "" {
		text += fmt.Sprintf(": expected %s, found %s", orNothing(r.Expected), orNothing(r.Found))
	}
	if r.Err != nil {
		text += ": " + r.Err.Error()
	}
	return text
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// Unwrap returns the cause.
func (r *Rejection) Unwrap() error { return r.Err }

// Verifier verifies evidence of one format. It returns a Fact, a *Rejection if the evidence does
// not verify for the authority, or any other error if it could not be verified. It never panics
// on untrusted bytes, and is safe for concurrent use. The claim must be about the subject's
// digest. Verifiers that also need the media type and size (notation) return an error, not a
// Rejection, for an incomplete descriptor.
type Verifier interface {
	Verify(ctx context.Context, subject image.Pinned, evidence attest.Evidence, authority Authority) (Fact, error)
}

// ByFormat dispatches evidence to the verifier of its format.
type ByFormat map[attest.Format]Verifier

// Verify implements Verifier. A format without a verifier is a Rejection.
func (b ByFormat) Verify(ctx context.Context, subject image.Pinned, evidence attest.Evidence, authority Authority) (Fact, error) {
	verifier, ok := b[evidence.Format]
	if !ok {
		return Fact{}, &Rejection{
			Code: WrongFormat, Authority: authority.Name, Origin: evidence.Origin,
			Err: fmt.Errorf("no verifier reads the format %q", evidence.Format),
		}
	}
	return verifier.Verify(ctx, subject, evidence, authority)
}
