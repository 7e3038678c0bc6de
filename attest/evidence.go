package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/image"
)

// Format names how evidence is encoded, and so which verifier can read it.
type Format string

// The formats of evidence.
const (
	// Cosign is a payload whose signature, certificate, log entry and timestamp
	// stand in the annotations of its layer: simple signing for a signature, a
	// DSSE envelope for an attestation. A raw DSSE referrer is one without
	// annotations.
	Cosign Format = "cosign"
	// Bundle is a Sigstore bundle, v0.1 to v0.3.
	Bundle Format = "bundle"
	// Notation is a Notary Project signature envelope, JWS or COSE.
	Notation Format = "notation"
)

// Role says what a piece of evidence offers itself as.
type Role string

// The roles of evidence.
const (
	// Signature: the claim is only that somebody signed the image. cosign's own
	// signing statement (PredicateCosignSign) is one.
	Signature Role = "signature"
	// Attestation: the claim is a statement with a predicate.
	Attestation Role = "attestation"
)

// Evidence is bytes that claim something about a digest. Nothing in it has
// been checked but its own digest.
type Evidence struct {
	Format Format
	Role   Role
	// MediaType is that of Payload.
	MediaType string
	// Payload is the signed document: simple signing JSON, DSSE envelope,
	// bundle or signature envelope.
	Payload []byte
	// Annotations are those of the layer; cosign keeps its signature there.
	Annotations map[string]string
	// PredicateType is what an attestation claims to be; for a referrer that is
	// signed by notation, its artifact type.
	PredicateType string
	// Target is what the signature must be over where that is not the image
	// itself: the manifest of a referrer which notation signed. It lists the
	// image as its subject and Content as its only layer; both were checked.
	Target image.Descriptor
	// Content is the document behind Target.
	Content []byte
	Origin  Origin
}

// Origin says where evidence was found.
type Origin struct {
	Repository image.Repository
	// Via is the tag, or "referrers".
	Via string
	// Manifest is the digest of the manifest that carries the evidence.
	Manifest image.Digest
}

// String returns repository@digest, or repository:tag.
func (o Origin) String() string {
	switch {
	case o.Repository.IsZero():
		return o.Via
	case !o.Manifest.IsZero():
		return o.Repository.String() + "@" + o.Manifest.String()
	default:
		return o.Repository.String() + ":" + o.Via
	}
}

// ID names the evidence by its content, so that the same signature found at
// two places is looked at once.
func (e Evidence) ID() string {
	h := sha256.New()
	for _, part := range []string{string(e.Format), string(e.Role), e.Target.Digest.String(), string(e.Payload)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	for _, key := range slices.Sorted(maps.Keys(e.Annotations)) {
		h.Write([]byte(key + "\x00" + e.Annotations[key] + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}
