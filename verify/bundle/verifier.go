package bundle

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	sgbundle "github.com/sigstore/sigstore-go/pkg/bundle"
	sgverify "github.com/sigstore/sigstore-go/pkg/verify"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/internal/limits"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// MaxBundle is the greatest size of a bundle in bytes, equal to the limit of package attest.
const MaxBundle = attest.MaxAttestation

// Verifier verifies Sigstore bundles with one snapshot of trust. It is immutable and safe for
// concurrent use; creating one is cheap.
type Verifier struct {
	snapshot *trust.Snapshot
}

var _ verify.Verifier = (*Verifier)(nil)

// New returns a Verifier. It panics on a nil snapshot.
func New(snapshot *trust.Snapshot) *Verifier {
	if snapshot == nil {
		panic("bundle.New: no snapshot of trust")
	}
	return &Verifier{snapshot: snapshot}
}

// Artifact is the required subject of a bundle.
type Artifact struct {
	// Digest identifies the artifact; for an image it is the manifest's digest.
	Digest image.Digest
	// Content is the artifact's bytes, if available. It allows statements with another algorithm
	// than Digest's, and message signatures by Ed25519 keys.
	Content []byte
}

// Verify implements verify.Verifier.
func (v *Verifier) Verify(ctx context.Context, subject image.Pinned, evidence attest.Evidence, authority verify.Authority) (verify.Fact, error) {
	if subject.IsZero() {
		return verify.Fact{}, errors.New("verify bundle: the image is not pinned to a digest")
	}
	fact, err := v.Prove(ctx, Artifact{Digest: subject.Digest()}, evidence.Payload, authority)
	if err == nil {
		err = contradicts(evidence, fact)
	}
	if rejection, ok := errors.AsType[*verify.Rejection](err); ok {
		rejection.Authority, rejection.Origin = authority.Name, evidence.Origin
		return verify.Fact{}, rejection
	}
	if err != nil {
		return verify.Fact{}, err
	}
	fact.Origin = evidence.Origin
	return fact, nil
}

// contradicts refuses a statement of another type than the evidence was found under.
func contradicts(evidence attest.Evidence, fact verify.Fact) error {
	if evidence.PredicateType == "" || fact.Statement == nil || fact.Statement.PredicateType == evidence.PredicateType {
		return nil
	}
	return &verify.Rejection{
		Code: verify.WrongPredicate, Expected: evidence.PredicateType, Found: fact.Statement.PredicateType,
		Err: errors.New("the bundle was offered as another type of statement than the one that is signed"),
	}
}

// Prove verifies a bundle about any artifact, in the same way as Verify for an image. The error
// is a *verify.Rejection, without authority and origin, if the bundle does not verify; any other
// error means that it could not be verified.
func (v *Verifier) Prove(ctx context.Context, artifact Artifact, payload []byte, authority verify.Authority) (fact verify.Fact, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = &verify.Rejection{Code: verify.Malformed, Err: &panicError{recovered}}
		}
	}()
	if err := ctx.Err(); err != nil {
		return verify.Fact{}, fmt.Errorf("verify bundle: %w", context.Cause(ctx))
	}
	if rejection := accepts(authority); rejection != nil {
		return verify.Fact{}, rejection
	}
	if artifact.Digest.IsZero() {
		return verify.Fact{}, errors.New("verify bundle: no digest to verify against")
	}
	material, err := v.snapshot.Material(authority)
	if err != nil {
		return verify.Fact{}, fmt.Errorf("verify bundle: %w", err)
	}
	entity, err := parse(payload)
	if err != nil {
		return verify.Fact{}, &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	p, err := newProof(entity, material, artifact, authority)
	if err != nil {
		return verify.Fact{}, &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	return p.prove()
}

// panicError is a panic of a library on untrusted bytes. The bundle is malformed and is rejected.
type panicError struct{ value any }

// Error implements error.
func (p *panicError) Error() string { return fmt.Sprintf("the bundle cannot be read: %v", p.value) }

// accepts refuses authorities that bundles do not support.
func accepts(authority verify.Authority) *verify.Rejection {
	reject := func(err error) *verify.Rejection {
		return &verify.Rejection{Code: verify.WrongFormat, Expected: fmt.Sprint(authority.Formats), Found: string(attest.Bundle), Err: err}
	}
	switch {
	case authority.Notation != nil:
		return &verify.Rejection{Code: verify.WrongFormat, Expected: string(attest.Notation), Found: string(attest.Bundle)}
	case len(authority.Formats) > 0 && !slices.Contains(authority.Formats, attest.Bundle):
		return reject(errors.New("the authority does not accept bundles"))
	default:
		return nil
	}
}

func parse(payload []byte) (*sgbundle.Bundle, error) {
	if len(payload) > MaxBundle {
		return nil, fmt.Errorf("the bundle has %d bytes, more than the bound of %d", len(payload), MaxBundle)
	}
	content := &protobundle.Bundle{}
	if err := protojson.Unmarshal(payload, content); err != nil {
		return nil, err
	}
	if err := measure(content.GetVerificationMaterial()); err != nil {
		return nil, err
	}
	return sgbundle.NewBundle(content)
}

// measure refuses material that is expensive to process. It runs before sigstore-go reads the
// bundle.
func measure(material *protobundle.VerificationMaterial) error {
	certificates := append(material.GetX509CertificateChain().GetCertificates(), material.GetCertificate())
	for _, c := range certificates {
		if err := limits.Certificate(c.GetRawBytes()); err != nil {
			return fmt.Errorf("a certificate: %w", err)
		}
	}
	for _, entry := range material.GetTlogEntries() {
		if err := limits.Entry(entry.GetCanonicalizedBody()); err != nil {
			return err
		}
		if err := limits.Checkpoint(entry.GetInclusionProof().GetCheckpoint().GetEnvelope()); err != nil {
			return err
		}
	}
	stamps := material.GetTimestampVerificationData().GetRfc3161Timestamps()
	if len(stamps) > limits.MaxTimestamps {
		return fmt.Errorf("the bundle has %d timestamps, more than the bound of %d", len(stamps), limits.MaxTimestamps)
	}
	for _, stamp := range stamps {
		if err := limits.Timestamp(stamp.GetSignedTimestamp()); err != nil {
			return err
		}
	}
	return nil
}

// policy binds a bundle to the artifact.
func (a Artifact) policy() (sgverify.ArtifactPolicyOption, error) {
	if a.Content != nil {
		return sgverify.WithArtifact(bytes.NewReader(a.Content)), nil
	}
	raw, err := hex.DecodeString(a.Digest.Hex())
	if err != nil {
		return nil, fmt.Errorf("digest %s: %w", a.Digest, err)
	}
	return sgverify.WithArtifactDigest(a.Digest.Algorithm(), raw), nil
}
