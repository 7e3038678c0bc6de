package cosign

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	"github.com/sigstore/cosign/v2/pkg/oci"
	common "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	rekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	sgverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// proof is the verification of one layer. It belongs to one call.
type proof struct {
	layer     *layer
	material  *trust.Material
	digest    image.Digest
	authority verify.Authority

	// leaf is the signing certificate, nil for a key.
	leaf    *x509.Certificate
	summary trust.Summary
	// logged and stamped are the trusted times of signing; zero if unknown.
	logged, stamped time.Time
	// confirmed is the time of a timestamp that the authority's terms do not require, for a signer with
	// a bound of validity and without a log. All other checks are as without that time.
	confirmed time.Time
	// notes are failed checks that do not reject the signature.
	notes []string
}

func (p *proof) prove(ctx context.Context) (verify.Fact, error) {
	if rejection := p.chooseSigner(); rejection != nil {
		return verify.Fact{}, rejection
	}
	if rejection := p.readTimestamp(); rejection != nil {
		return verify.Fact{}, diagnosis{p}.rejection(rejection)
	}
	options, err := p.options()
	if err != nil {
		return verify.Fact{}, &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	object, err := p.layer.object()
	if err != nil {
		return verify.Fact{}, &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	// The singular functions check one signature, fetch nothing, and run on this goroutine, where
	// a panic can be recovered.
	check := cosign.VerifyImageSignature
	if p.layer.envelope != nil {
		check = cosign.VerifyBlobAttestation // of any subject; the claim decides which
	}
	logged, err := check(ctx, object, v1.Hash{Algorithm: p.digest.Algorithm(), Hex: p.digest.Hex()}, options)
	if err != nil {
		return verify.Fact{}, diagnosis{p}.rejection(asRejection(err))
	}
	if p.wantsLog() {
		if !logged {
			return verify.Fact{}, errors.New("verify cosign signature: cosign accepted a signature without the log entry that was asked for")
		}
		p.logged = time.Unix(p.layer.entry.Payload.IntegratedTime, 0).UTC()
	}
	return p.fact()
}

// asRejection returns the rejection of the claim, and wraps any other error.
func asRejection(err error) *verify.Rejection {
	if rejection, ok := errors.AsType[*verify.Rejection](err); ok {
		return rejection
	}
	return &verify.Rejection{Code: verify.Malformed, Err: err}
}

// chooseSigner selects the certificate for the signature check, for authorities that certificates
// identify.
func (p *proof) chooseSigner() *verify.Rejection {
	if p.byKey() {
		return nil
	}
	given := p.material.Leaf()
	p.leaf = p.layer.certificate
	switch {
	case p.leaf == nil && given == nil:
		return &verify.Rejection{Code: verify.WrongIdentity, Expected: p.expected(), Found: "a signature by a key, without a certificate"}
	case p.leaf == nil:
		p.leaf = given // cosign verify --certificate: the signature names no signer
	case given != nil && !given.Equal(p.leaf):
		return &verify.Rejection{
			Code: verify.WrongIdentity, Expected: trust.Describe(given), Found: trust.Describe(p.leaf),
			Err: errors.New("the certificate is not the one that the policy gives"),
		}
	}
	var err error
	p.summary, err = trust.Summarize(p.leaf)
	if err != nil {
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	p.authority = p.authority.Within(p.summary.Issuer, p.summary.Subjects)
	return nil
}

// readTimestamp verifies the timestamp before cosign reads it: the library takes the first
// verified timestamp without a check that there is any.
func (p *proof) readTimestamp() *verify.Rejection {
	required := p.authority.Timestamp.Required
	if p.layer.timestamp == nil {
		if required {
			return &verify.Rejection{Code: verify.NoTimestamp, Expected: "a timestamp of a trusted authority with the signature"}
		}
		return nil
	}
	if !required && len(p.material.TimestampingAuthorities()) == 0 {
		if !p.wantsLog() && p.authority.IsBounded(p.leaf) {
			p.confirmed = p.material.ConfirmedTime([][]byte{p.layer.timestamp.SignedRFC3161Timestamp}, p.layer.stamped())
		}
		p.layer.timestamp = nil // not required, and no authority to verify it
		return nil
	}
	entity := stampedEntity{timestamp: p.layer.timestamp.SignedRFC3161Timestamp, signature: p.layer.stamped()}
	stamps, err := sgverify.VerifySignedTimestampWithThreshold(&entity, p.material, 1)
	switch {
	case err == nil:
		p.stamped = stamps[0].Time.UTC()
	case p.needsTimestamp():
		return &verify.Rejection{Code: verify.BadTimestamp, Expected: "a timestamp of a trusted authority for this signature", Err: err}
	default: // as cosign, which verifies timestamps only on request
		p.layer.timestamp = nil
		p.notes = append(p.notes, "the timestamp was not used: "+err.Error())
	}
	return nil
}

// needsTimestamp reports whether the timestamp must verify: it is required, or no log gives the
// time of signing.
func (p *proof) needsTimestamp() bool {
	return p.authority.Timestamp.Required || !p.wantsLog()
}

// stampedEntity is a signature and its timestamp, as sigstore-go takes them.
type stampedEntity struct {
	sgverify.BaseSignedEntity
	timestamp, signature []byte
}

// Timestamps implements sigstore-go's SignedTimestampProvider.
func (e *stampedEntity) Timestamps() ([][]byte, error) { return [][]byte{e.timestamp}, nil }

// SignatureContent implements sigstore-go's SignatureProvider.
func (e *stampedEntity) SignatureContent() (sgverify.SignatureContent, error) {
	return rawSignature(e.signature), nil
}

type rawSignature []byte

func (r rawSignature) Signature() []byte                                         { return r }
func (r rawSignature) EnvelopeContent() sgverify.EnvelopeContent                 { return nil }
func (r rawSignature) MessageSignatureContent() sgverify.MessageSignatureContent { return nil }

// options translates the authority's terms for cosign's library.
func (p *proof) options() (*cosign.CheckOpts, error) {
	o := &cosign.CheckOpts{
		TrustedMaterial:     p.material,
		Offline:             true,
		IgnoreTlog:          !p.wantsLog(),
		IgnoreSCT:           !p.wantsSCT(),
		UseSignedTimestamps: p.layer.timestamp != nil,
		ClaimVerifier: func(oci.Signature, v1.Hash, map[string]any) error {
			if rejection := p.layer.check(p.digest); rejection != nil {
				return rejection
			}
			return nil
		},
	}
	if p.authority.Keyless != nil {
		return o, nil // cosign takes the key of the certificate in the layer
	}
	var err error
	o.SigVerifier, err = p.verifier()
	return o, err
}

// verifier checks with the signer's key.
func (p *proof) verifier() (signature.Verifier, error) {
	if p.byKey() {
		return p.material.Key(), nil
	}
	hash := "sha256" // cosign's default for every certificate
	if p.authority.Certificate != nil && p.authority.Certificate.Hash != "" {
		hash = p.authority.Certificate.Hash
	}
	return trust.NewPublicKey(p.leaf.PublicKey, hash)
}

func (p *proof) byKey() bool    { return p.material.Key() != nil }
func (p *proof) wantsLog() bool { return !p.authority.Log.Ignore }
func (p *proof) wantsSCT() bool { return !p.authority.CT().Ignore }

// fact checks the terms that cosign does not, and returns the fact.
func (p *proof) fact() (verify.Fact, error) {
	fact := verify.Fact{Subject: p.digest, Format: attest.Cosign, Notes: p.notes}
	fact.SignedAt, fact.TimeSource = p.signedAt()
	if p.wantsLog() {
		payload := p.layer.entry.Payload
		fact.Entries = []verify.LogEntry{{LogID: payload.LogID, Index: payload.LogIndex, Time: p.logged}}
	}
	checks := []func(*verify.Fact) *verify.Rejection{p.certify, p.identify}
	for _, check := range checks {
		if rejection := check(&fact); rejection != nil {
			return verify.Fact{}, rejection
		}
	}
	p.layer.claim(&fact)
	if rejection := verify.MissingAnnotation(p.authority.Annotations, fact.Annotations); rejection != nil {
		return verify.Fact{}, rejection
	}
	if rejection := p.authority.Admits(fact.SignedAt, p.leaf); rejection != nil {
		return verify.Fact{}, rejection
	}
	return fact, nil
}

// certify checks the chain at each trusted time, or now where there is none. cosign checks it
// only at the start of the leaf's validity. An intermediate may have been valid then, but not
// when the signature was made (GHSA-wfqv-66vq-46rm).
func (p *proof) certify(fact *verify.Fact) *verify.Rejection {
	if p.byKey() {
		return nil
	}
	if rejection := p.untrusted(); rejection != nil {
		return rejection
	}
	if rejection := p.badChain(); rejection != nil {
		return rejection
	}
	if p.logged.IsZero() && p.stamped.IsZero() {
		end, err := trust.ValidUntil(p.leaf, p.material, time.Now())
		if err != nil {
			return &verify.Rejection{Code: verify.ExpiredCertificate, Err: err}
		}
		fact.Expires = end
	}
	if p.authority.Keyless != nil {
		return nil // cosign has verified the certificate timestamp
	}
	return p.badSCT()
}

func (p *proof) identify(fact *verify.Fact) *verify.Rejection {
	switch {
	case p.byKey():
		fact.Signer = verify.Signer{KeyFingerprint: p.material.Key().Fingerprint}
	case p.authority.Keyless != nil:
		subject, rejection := p.summary.Admit(*p.authority.Keyless)
		if rejection != nil {
			return rejection
		}
		fact.Signer = p.summary.Signer(subject)
	default:
		fact.Signer = p.summary.Signer("")
	}
	return nil
}

// signedAt is the earliest trusted time, and its source.
func (p *proof) signedAt() (time.Time, verify.TimeSource) {
	switch {
	case !p.logged.IsZero() && (p.stamped.IsZero() || !p.stamped.Before(p.logged)):
		return p.logged, verify.LogTime
	case !p.stamped.IsZero():
		return p.stamped, verify.StampTime
	case !p.confirmed.IsZero():
		return p.confirmed, verify.StampTime
	}
	return time.Time{}, ""
}

// logEntry parses the entry as sigstore-go does.
func (p *proof) logEntry() (*tlog.Entry, error) {
	payload := p.layer.entry.Payload
	id, err := hex.DecodeString(payload.LogID)
	if err != nil {
		return nil, fmt.Errorf("log identifier: %w", err)
	}
	var kind struct {
		Kind    string `json:"kind"`
		Version string `json:"apiVersion"`
	}
	if err := json.Unmarshal(p.layer.body, &kind); err != nil {
		return nil, fmt.Errorf("log entry: %w", err)
	}
	return tlog.NewTlogEntry(&rekor.TransparencyLogEntry{
		LogIndex: payload.LogIndex, LogId: &common.LogId{KeyId: id},
		KindVersion:    &rekor.KindVersion{Kind: kind.Kind, Version: kind.Version},
		IntegratedTime: payload.IntegratedTime, CanonicalizedBody: p.layer.body,
		InclusionPromise: &rekor.InclusionPromise{SignedEntryTimestamp: p.layer.entry.SignedEntryTimestamp},
	})
}

// checkSignature checks the signature alone, over the layer's own content.
func (p *proof) checkSignature() error {
	verifier, err := p.verifier()
	if err != nil {
		return err
	}
	if p.layer.envelope == nil {
		return verifier.VerifySignature(bytes.NewReader(p.layer.signature), bytes.NewReader(p.layer.payload))
	}
	return checkEnvelope(verifier, p.layer.envelope)
}
