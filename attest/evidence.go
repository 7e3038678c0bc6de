package attest

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/image"
)

// Format is the encoding of evidence, which determines its verifier.
type Format string

// The formats of evidence.
const (
	// Cosign is a payload in a layer with the signature, certificate, log entry and timestamp in
	// its annotations: simple signing for a signature, a DSSE envelope for an attestation. A raw
	// DSSE referrer is one without annotations.
	Cosign Format = "cosign"
	// Bundle is a Sigstore bundle, v0.1 to v0.3.
	Bundle Format = "bundle"
	// Notation is a Notary Project signature envelope, JWS or COSE.
	Notation Format = "notation"
)

// Role is the unverified kind of claim in a piece of evidence.
type Role string

// The roles of evidence.
const (
	// Signature: the only claim is that the signer signed the image. cosign's own signing
	// statement (PredicateCosignSign) is one.
	Signature Role = "signature"
	// Attestation: the claim is a statement with a predicate.
	Attestation Role = "attestation"
)

// Evidence is a claim about a digest, unverified except for its own digest.
type Evidence struct {
	Format Format
	Role   Role
	// MediaType is the media type of Payload.
	MediaType string
	// Payload is the signed document: simple signing JSON, DSSE envelope,
	// bundle or signature envelope.
	Payload []byte
	// Annotations are the layer's annotations; cosign stores its signature there.
	Annotations map[string]string
	// PredicateType is the unverified predicate type of an attestation; for a referrer that is
	// signed by notation, its artifact type.
	PredicateType string
	// Target is the signed manifest, if that is not the image itself: the manifest of a referrer
	// signed by notation. It lists the image as its subject and Content as its only layer; both
	// are checked.
	Target image.Descriptor
	// Content is the document behind Target.
	Content []byte
	Origin  Origin
}

// Origin is the location of evidence.
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

// ID identifies the evidence by its content, so that a signature that is found at two places is
// processed once.
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
