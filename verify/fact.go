package verify

import (
	"context"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

// Fact is a claim about a digest, proved for one authority by one signature
// that met all of the authority's terms.
type Fact struct {
	// Subject is the digest that the claim is about.
	Subject image.Digest
	Format  attest.Format
	Role    attest.Role
	Signer  Signer
	// Statement is what an attestation says; nil for a signature.
	Statement *attest.Statement
	// Annotations are those in the signed payload.
	Annotations map[string]string
	// Entries are the transparency log entries that were proved.
	Entries []LogEntry
	// SignedAt is the earliest trusted time of signing; zero if there is none.
	SignedAt time.Time
	// Expires is when the fact stops being one, because a certificate,
	// revocation answer or signature expires that it rests on for its life, and
	// not only for the moment of signing; zero if nothing does.
	Expires time.Time
	// Notes are checks that failed and were only to be noted.
	Notes  []string
	Origin attest.Origin
}

// Signer is who signed: a key or the identity of a certificate.
type Signer struct {
	// ID is the same for every signature of one signer, whatever term of an
	// authority it met; thresholds count it once. Empty: the other fields tell.
	ID string `json:"-"`
	// KeyFingerprint is the SHA-256 of the PKIX public key in hexadecimal, for
	// keys.
	KeyFingerprint string `json:"keyFingerprint,omitempty"`
	// Subject is the matched subject alternative name of a short-lived
	// certificate, or the subject's distinguished name of any other.
	Subject string `json:"subject,omitempty"`
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

// LogEntry names an entry of a transparency log.
type LogEntry struct {
	// LogID is the hexadecimal key identifier of the log.
	LogID string `json:"logID,omitempty"`
	Index int64  `json:"index"`
	// Time is when the log says it took the entry in; zero for logs that do not
	// say (Rekor v2).
	Time time.Time `json:"time,omitzero"`
}

// Code says why evidence is no proof. Codes are a contract: documented, and
// never reused for another meaning.
type Code string

// Why evidence is no proof for an authority.
const (
	WrongKey           Code = "wrong-key"           // signed, but not by this key
	WrongIdentity      Code = "wrong-identity"      // certificate of somebody else
	WrongExtension     Code = "wrong-extension"     // the right identity, from another workflow
	WrongAnnotation    Code = "wrong-annotation"    // the signed payload lacks an annotation
	WrongDigest        Code = "wrong-digest"        // a good signature of another image
	WrongPredicate     Code = "wrong-predicate"     // a good statement of another type
	WrongFormat        Code = "wrong-format"        // this authority cannot be proved in this format
	BadSignature       Code = "bad-signature"       // the signature does not fit the bytes
	Malformed          Code = "malformed"           // it cannot be read
	UntrustedChain     Code = "untrusted-chain"     // the certificate leads to no trusted root
	ExpiredCertificate Code = "expired-certificate" // not valid at the time of signing
	NoLogEntry         Code = "no-log-entry"        // a log entry is asked for, and none travels along
	BadLogEntry        Code = "bad-log-entry"       // the entry is not of a trusted log, or of another signature
	NoSCT              Code = "no-sct"              // the certificate lacks a certificate timestamp
	BadSCT             Code = "bad-sct"             // the certificate timestamp is not of a trusted log
	NoTimestamp        Code = "no-timestamp"        // a trusted time is asked for, and there is none
	BadTimestamp       Code = "bad-timestamp"       // the timestamp is of no trusted authority, or of other bytes
	OutsideValidity    Code = "outside-validity"    // signed outside the authority's notBefore and notAfter
	Expired            Code = "expired"             // the signature says that it has expired
	Revoked            Code = "revoked"             // a certificate of the chain was revoked
)

// Rejection says why a piece of evidence proves nothing for an authority.
type Rejection struct {
	Code Code
	// Authority is the name of the authority that was tried.
	Authority string
	Origin    attest.Origin
	// Expected and Found are the nearest miss, where there is one to show.
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

// Verifier proves evidence of one format. It returns a Fact, or a *Rejection
// when the evidence is no proof for the authority, or any other error when it
// could not look. It never panics on foreign bytes, and is safe for concurrent
// use. The subject's digest is what the claim must be about; verifiers that
// need the media type and size too (notation) refuse an incomplete descriptor
// as could-not-look.
type Verifier interface {
	Verify(ctx context.Context, subject image.Pinned, evidence attest.Evidence, authority Authority) (Fact, error)
}

// ByFormat dispatches evidence to the verifier of its format.
type ByFormat map[attest.Format]Verifier

// Verify implements Verifier. A format without a verifier is a Rejection: such
// evidence proves nothing here.
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
