package bundle

import (
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	sgbundle "github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	sgverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// proof is the verification of one bundle. It belongs to one call: sigstore-go edits the
// certificate that it verifies.
type proof struct {
	entity    *sgbundle.Bundle
	material  *trust.Material
	artifact  Artifact
	authority verify.Authority

	content    sgverify.SignatureContent
	signer     sgverify.VerificationContent
	entries    []*tlog.Entry
	timestamps [][]byte
}

func newProof(entity *sgbundle.Bundle, material *trust.Material, artifact Artifact, authority verify.Authority) (*proof, error) {
	carried, err := intermediates(entity)
	if err != nil {
		return nil, err
	}
	p := &proof{entity: entity, material: material.WithIntermediates(carried), artifact: artifact, authority: authority}
	p.content, err = entity.SignatureContent()
	if err != nil {
		return nil, fmt.Errorf("read the signature: %w", err)
	}
	p.signer, err = entity.VerificationContent()
	if err != nil {
		return nil, fmt.Errorf("read the verification material: %w", err)
	}
	p.authority, err = trust.Within(authority, p.signer.Certificate())
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	p.entries, err = entity.TlogEntries()
	if err != nil {
		return nil, fmt.Errorf("read the log entries: %w", err)
	}
	p.timestamps, err = entity.Timestamps()
	if err != nil {
		return nil, fmt.Errorf("read the timestamps: %w", err)
	}
	return p, nil
}

// intermediates are the certificates in a v0.1 or v0.2 bundle next to the leaf. They are not
// trusted; they help to build a chain where a policy gives only a root.
func intermediates(entity *sgbundle.Bundle) ([]*x509.Certificate, error) {
	chain := entity.GetVerificationMaterial().GetX509CertificateChain().GetCertificates()
	if len(chain) > trust.MaxChain {
		return nil, fmt.Errorf("the bundle carries %d certificates, more than the bound of %d", len(chain), trust.MaxChain)
	}
	var found []*x509.Certificate
	for i, raw := range chain {
		if i == 0 {
			continue
		}
		c, err := x509.ParseCertificate(raw.GetRawBytes())
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the bundle's chain: %w", i+1, err)
		}
		if c.IsCA {
			found = append(found, c)
		}
	}
	return found, nil
}

func (p *proof) prove() (verify.Fact, error) {
	if rejection := p.unfit(); rejection != nil {
		return verify.Fact{}, rejection
	}
	options, useNow := p.options()
	verifier, err := sgverify.NewVerifier(p.material, options...)
	if err != nil {
		return verify.Fact{}, fmt.Errorf("verify bundle: %w", err)
	}
	artifact, err := p.artifact.policy()
	if err != nil {
		return verify.Fact{}, fmt.Errorf("verify bundle: %w", err)
	}
	// The identity is checked below over all names of the certificate; sigstore-go checks one
	// name, and expressions without anchors.
	identity := sgverify.WithoutIdentitiesUnsafe()
	if p.byKey() {
		identity = sgverify.WithKey()
	}
	result, err := verifier.Verify(p.entity, sgverify.NewPolicy(artifact, identity))
	if err != nil {
		return verify.Fact{}, diagnosis{p, useNow}.rejection(err)
	}
	return p.fact(result, useNow)
}

// unfit refuses a bundle that is signed by the wrong kind of signer.
func (p *proof) unfit() *verify.Rejection {
	leaf := p.signer.Certificate()
	switch {
	case p.byKey() && leaf != nil:
		return &verify.Rejection{Code: verify.WrongKey, Expected: p.keyName(), Found: "a certificate: " + trust.Describe(leaf)}
	case p.byKey() && p.isMessage() && p.artifact.Content == nil && p.material.Key().IsEd25519():
		return &verify.Rejection{Code: verify.WrongFormat, Err: errors.New(
			"an Ed25519 message signature is over the artifact's bytes, and an image is known by its digest; sign with a DSSE envelope (cosign 2.6 or 3)")}
	case !p.byKey() && leaf == nil:
		return &verify.Rejection{Code: verify.WrongIdentity, Expected: p.expected(), Found: "a key: " + p.hint()}
	case p.material.Leaf() != nil && !p.material.Leaf().Equal(leaf):
		return &verify.Rejection{Code: verify.WrongIdentity, Expected: trust.Describe(p.material.Leaf()), Found: trust.Describe(leaf),
			Err: errors.New("the certificate is not the one that the policy gives")}
	case p.otherHash(leaf):
		return &verify.Rejection{Code: verify.WrongFormat, Expected: p.authority.Certificate.Hash, Found: trust.UsualHash(leaf.PublicKey),
			Err: errors.New("in a bundle, a certificate's key signs with the digest algorithm that belongs to it")}
	default:
		return nil
	}
}

// otherHash reports whether the authority names a digest algorithm that a bundle cannot have.
func (p *proof) otherHash(leaf *x509.Certificate) bool {
	given := p.authority.Certificate
	return given != nil && given.Hash != "" && given.Hash != trust.UsualHash(leaf.PublicKey)
}

// options are sigstore-go's checks for the authority. useNow means that the certificate must be
// valid now, because no trusted time is required.
func (p *proof) options() (options []sgverify.VerifierOption, useNow bool) {
	options = append(options, sgverify.WithoutStatementPredicate())
	if p.wantsLog() {
		options = append(options, sgverify.WithTransparencyLog(1))
	}
	if p.wantsSCT() {
		options = append(options, sgverify.WithSignedCertificateTimestamps(1))
	}
	timed := false
	if p.wantsLog() && p.hasPromise() {
		options, timed = append(options, sgverify.WithIntegratedTimestamps(1)), true
	}
	if p.wantsTimestamp() {
		options, timed = append(options, sgverify.WithSignedTimestamps(1)), true
	}
	switch {
	case timed:
	case p.byKey():
		options = append(options, sgverify.WithNoObserverTimestamps())
	case p.wantsLog():
		// The entry gives no time (Rekor v2): a timestamp is missing.
		options = append(options, sgverify.WithObserverTimestamps(1))
	default:
		options, useNow = append(options, sgverify.WithCurrentTime()), true
	}
	return options, useNow
}

func (p *proof) byKey() bool     { return p.material.Key() != nil }
func (p *proof) wantsLog() bool  { return !p.authority.Log.Ignore }
func (p *proof) wantsSCT() bool  { return !p.authority.CT().Ignore }
func (p *proof) isMessage() bool { return p.content.MessageSignatureContent() != nil }

// wantsTimestamp reports whether a timestamp must verify: it is required, or one is present and
// the material has timestamp authorities.
func (p *proof) wantsTimestamp() bool {
	return p.authority.Timestamp.Required || (len(p.timestamps) > 0 && len(p.material.TimestampingAuthorities()) > 0)
}

// hasPromise reports whether a known log promises an entry, which gives a trusted time.
func (p *proof) hasPromise() bool {
	for _, entry := range p.entries {
		if p.isKnown(entry) && entry.HasInclusionPromise() {
			return true
		}
	}
	return false
}

func (p *proof) isKnown(entry *tlog.Entry) bool {
	_, known := p.material.RekorLogs()[hex.EncodeToString([]byte(entry.LogKeyID()))]
	return known
}

// fact checks the terms that sigstore-go does not, and returns the fact.
func (p *proof) fact(result *sgverify.VerificationResult, useNow bool) (verify.Fact, error) {
	fact := verify.Fact{
		Subject: p.artifact.Digest, Format: attest.Bundle, Role: attest.Signature,
	}
	fact.SignedAt, fact.TimeSource = signedAt(result)
	if fact.SignedAt.IsZero() {
		var rejection *verify.Rejection
		fact.SignedAt, rejection = p.confirmed()
		if rejection != nil {
			return verify.Fact{}, rejection
		}
		if !fact.SignedAt.IsZero() {
			fact.TimeSource = verify.StampTime
		}
	}
	fact.Entries = p.provedEntries(fact.SignedAt)
	for _, entry := range fact.Entries { // sigstore-go returns the time of the first entry of each log alone
		if !entry.Time.IsZero() && entry.Time.Before(fact.SignedAt) {
			fact.SignedAt, fact.TimeSource = entry.Time, verify.LogTime
		}
	}
	if p.wantsLog() && len(fact.Entries) == 0 {
		return verify.Fact{}, &verify.Rejection{
			Code: verify.BadLogEntry, Expected: "an entry of a transparency log that was in use at the time of signing", Found: "signed at " + stamp(fact.SignedAt),
		}
	}
	if rejection := p.identify(&fact); rejection != nil {
		return verify.Fact{}, rejection
	}
	if rejection := p.claim(&fact); rejection != nil {
		return verify.Fact{}, rejection
	}
	if rejection := verify.MissingAnnotation(p.authority.Annotations, fact.Annotations); rejection != nil {
		return verify.Fact{}, rejection
	}
	if rejection := p.authority.Admits(fact.SignedAt, p.signer.Certificate()); rejection != nil {
		return verify.Fact{}, rejection
	}
	if useNow {
		var err error
		fact.Expires, err = trust.ValidUntil(p.signer.Certificate(), p.material, time.Now())
		if err != nil {
			return verify.Fact{}, &verify.Rejection{Code: verify.ExpiredCertificate, Err: err}
		}
	}
	return fact, nil
}

// confirmed returns the time of a timestamp that the authority's terms do not require, for a signer with a
// bound of validity: its key was retired, for example. All other checks are as without that time.
func (p *proof) confirmed() (time.Time, *verify.Rejection) {
	leaf := p.signer.Certificate()
	if !p.authority.IsBounded(leaf) {
		return time.Time{}, nil
	}
	at := p.material.ConfirmedTime(p.timestamps, p.content.Signature())
	if at.IsZero() || leaf == nil {
		return at, nil
	}
	if _, err := sgverify.VerifyLeafCertificate(at, trust.Checkable(leaf), p.material); err != nil {
		return at, &verify.Rejection{Code: verify.ExpiredCertificate, Err: err}
	}
	return at, nil
}

// identify checks the signer against the authority.
func (p *proof) identify(fact *verify.Fact) *verify.Rejection {
	if p.byKey() {
		fact.Signer = verify.Signer{KeyFingerprint: p.material.Key().Fingerprint}
		return nil
	}
	summary, err := trust.Summarize(p.signer.Certificate())
	if err != nil {
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	subject := ""
	if p.authority.Keyless != nil {
		var rejection *verify.Rejection
		subject, rejection = summary.Admit(*p.authority.Keyless)
		if rejection != nil {
			return rejection
		}
	}
	fact.Signer = summary.Signer(subject)
	return nil
}

// provedEntries lists the entries of known logs. sigstore-go has refused the bundle if one of
// them fails. The exception is an invalid promise, which it ignores where another entry verifies.
// An entry without a promise has no time of the log, and sigstore-go ignores the log's period of
// validity for it: the trusted time of signing must be within the period.
func (p *proof) provedEntries(signed time.Time) []verify.LogEntry {
	if !p.wantsLog() {
		return nil
	}
	var proved []verify.LogEntry
	for _, entry := range p.entries {
		if !p.isKnown(entry) {
			continue
		}
		at := time.Time{}
		if entry.HasInclusionPromise() {
			if tlog.VerifySET(entry, p.material.RekorLogs()) != nil {
				continue
			}
			at = entry.IntegratedTime().UTC()
		} else if !inUse(p.material.RekorLogs()[hex.EncodeToString([]byte(entry.LogKeyID()))], signed) {
			continue
		}
		proved = append(proved, verify.LogEntry{
			LogID: hex.EncodeToString([]byte(entry.LogKeyID())), Index: entry.LogIndex(), Time: at,
		})
	}
	return proved
}

// inUse reports whether a log was valid at a time. An unknown time
// (zero) counts, as in sigstore-go: the signature of a key needs no time of signing.
func inUse(log *root.TransparencyLog, at time.Time) bool {
	return at.IsZero() || !at.Before(log.ValidityPeriodStart) && (log.ValidityPeriodEnd.IsZero() || !at.After(log.ValidityPeriodEnd))
}

// signedAt is the earliest trusted time, and its source.
func signedAt(result *sgverify.VerificationResult) (earliest time.Time, source verify.TimeSource) {
	for _, stamp := range result.VerifiedTimestamps {
		if stamp.Type == "CurrentTime" {
			continue
		}
		if earliest.IsZero() || stamp.Timestamp.Before(earliest) {
			earliest, source = stamp.Timestamp, verify.StampTime
			if stamp.Type == "Tlog" {
				source = verify.LogTime
			}
		}
	}
	return earliest.UTC(), source
}

func (p *proof) keyName() string { return "key " + p.material.Key().Fingerprint[:16] }

func (p *proof) hint() string {
	if key := p.signer.PublicKey(); key != nil {
		return key.Hint()
	}
	return ""
}

// expected describes the signer that the authority requires.
func (p *proof) expected() string {
	switch {
	case p.authority.Keyless != nil:
		return p.authority.Keyless.String()
	case p.material.Leaf() != nil:
		return trust.Describe(p.material.Leaf())
	default:
		return "a certificate of the given chain"
	}
}
