package notation

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// judge turns notation's outcome into a rejection, an error or nil. notation merges its errors,
// so the results of its checks are read one by one.
func (p *proof) judge(ctx context.Context, failure error) error {
	if p.outcome == nil || p.outcome.EnvelopeContent == nil && failure == nil {
		return fmt.Errorf("verify notation signature %s: no outcome: %w", p.evidence.Origin, failure)
	}
	for _, result := range p.outcome.VerificationResults {
		if result.Error == nil {
			continue
		}
		if result.Action == trustpolicy.ActionEnforce && result.Type == trustpolicy.TypeRevocation {
			// A signature of another image, attached again, is no gap while a server is unavailable.
			return cmp.Or(p.compareTarget(), p.failed(ctx, result))
		}
		if result.Action == trustpolicy.ActionEnforce {
			return p.failed(ctx, result)
		}
		p.notes = append(p.notes, fmt.Sprintf("%s: %v", result.Type, result.Error))
	}
	if p.terms.level.Revocation == verify.Skip {
		p.notes = append(p.notes, "revocation: not checked, as the policy skips it")
	}
	if err := p.compareTarget(); err != nil {
		return err
	}
	if failure != nil { // a failure that no result and no comparison explains
		return p.reject(verify.Malformed, failure)
	}
	return p.compareAnnotations()
}

// failed translates a failed check.
func (p *proof) failed(ctx context.Context, result *notation.ValidationResult) error {
	switch result.Type {
	case trustpolicy.TypeIntegrity:
		return p.reject(integrityCode(result.Error), result.Error)
	case trustpolicy.TypeAuthenticity:
		return p.notAuthentic(result.Error)
	case trustpolicy.TypeExpiry:
		expiry := p.signed.info.SignedAttributes.Expiry
		r := p.miss(verify.Expired, "a signature that has not expired", "one that expired at "+expiry.UTC().Format(time.RFC3339))
		r.Err = result.Error
		return r
	case trustpolicy.TypeAuthenticTimestamp:
		return p.badTime(ctx, result.Error)
	case trustpolicy.TypeRevocation:
		return p.notCleared(p.revocationCheck.signer, result.Error)
	default:
		return p.reject(verify.Malformed, result.Error)
	}
}

func (p *proof) notAuthentic(err error) error {
	chain := p.signed.info.CertificateChain
	kind := p.signed.store()
	trusted := p.terms.stores[kind]
	if _, verr := signature.VerifyAuthenticity(&p.signed.info, trusted); verr != nil {
		r := p.miss(verify.UntrustedChain, "a certificate of the trust store "+string(kind)+": "+subjects(trusted), chain[len(chain)-1].Subject.String())
		r.Err = err
		return r
	}
	identities := p.terms.document.TrustPolicies[0].TrustedIdentities
	r := p.miss(verify.WrongIdentity, strings.Join(identities, " or "), identityPrefix+" "+chain[0].Subject.String())
	if !strings.Contains(err.Error(), "does not match the X.509 trusted identities") { // Expected and Found are more precise
		r.Err = err
	}
	return r
}

// notCleared distinguishes revoked certificates from those without a revocation status.
func (p *proof) notCleared(asked *revocationRequests, err error) error {
	if asked.revoked != "" {
		r := p.miss(verify.Revoked, "a certificate that was not revoked", asked.revoked)
		r.Err = err
		return r
	}
	cause := err
	if asked.failure != nil {
		cause = asked.failure
	}
	return &image.Error{Kind: image.Unavailable, Op: "look up revocation for notation signature", On: p.evidence.Origin.String(), Err: cause}
}

// compareTarget repeats notation's comparison to find the difference.
func (p *proof) compareTarget() error {
	found := p.signed.target
	if found.Digest.String() == p.target.Digest.String() && found.MediaType == p.target.MediaType && found.Size == p.target.Size {
		return nil
	}
	if found.Digest.String() != p.target.Digest.String() {
		return p.miss(verify.WrongDigest, p.target.Digest.String(), found.Digest.String())
	}
	return p.miss(verify.WrongDigest,
		fmt.Sprintf("%s (%s, %d bytes)", p.target.Digest, p.target.MediaType, p.target.Size),
		fmt.Sprintf("%s (%s, %d bytes)", found.Digest, found.MediaType, found.Size))
}

func (p *proof) compareAnnotations() error {
	return p.placed(verify.MissingAnnotation(p.authority.Annotations, p.signed.target.Annotations))
}

// placed adds the authority and the origin to a rejection; nil stays nil.
func (p *proof) placed(r *verify.Rejection) error {
	if r == nil {
		return nil
	}
	r.Authority, r.Origin = p.authority.Name, p.evidence.Origin
	return r
}

// conclude returns the verified fact.
func (p *proof) conclude(ctx context.Context) (verify.Fact, error) {
	signedAt, err := p.signingTime(ctx)
	if err != nil {
		return verify.Fact{}, err
	}
	leaf := p.signed.info.CertificateChain[0]
	key := verify.Fingerprint(leaf.PublicKey, leaf.RawSubjectPublicKeyInfo)
	fact := verify.Fact{
		Subject:     p.subject.Digest(),
		Format:      attest.Notation,
		Role:        attest.Signature,
		Signer:      verify.Signer{Key: key, Subject: leaf.Subject.String(), Issuer: leaf.Issuer.String()},
		Annotations: p.signed.target.Annotations,
		Signatures:  []string{p.signatureID()},
		SignedAt:    signedAt,
		Expires:     p.expires(),
		Notes:       p.notes,
		Origin:      p.evidence.Origin,
	}
	if !signedAt.IsZero() {
		fact.TimeSource = verify.OwnTime
		if p.wantsToken() {
			fact.TimeSource = verify.StampTime
		}
	}
	if p.isDocument() {
		fact.Role = attest.Attestation
		fact.Statement = p.statement()
		if fact.Statement.Predicate == nil {
			fact.Notes = append(fact.Notes, "document: it is not JSON, so no condition can read it")
		}
	}
	return fact, nil
}

// signatureID is as verify.SignatureID. An envelope has an ECDSA signature as r and s of equal
// length (RFC 7518, RFC 9053).
func (p *proof) signatureID() string {
	signature := p.signed.info.Signature
	if _, isECDSA := p.signed.info.CertificateChain[0].PublicKey.(*ecdsa.PublicKey); isECDSA {
		signature = signature[:len(signature)/2]
	}
	return verify.SignatureID(signature)
}

// statement converts a signed document to an in-toto statement, without a statement type because
// it is none.
func (p *proof) statement() *attest.Statement {
	digest := p.subject.Digest()
	s := &attest.Statement{
		Subjects:      []attest.Subject{{Digest: map[string]string{digest.Algorithm(): digest.Hex()}}},
		PredicateType: p.evidence.PredicateType,
	}
	if json.Valid(p.evidence.Content) {
		s.Predicate = slices.Clone(p.evidence.Content)
	}
	return s
}

// expires is the earliest end of the elements that must stay valid after signing. Checks with the
// action "log" do not count.
func (p *proof) expires() time.Time {
	var ends []time.Time
	info := p.signed.info
	if p.terms.level.Expiry == verify.Enforce {
		ends = append(ends, info.SignedAttributes.Expiry)
	}
	hasTime := info.SignedAttributes.SigningScheme != signature.SigningSchemeX509 || len(p.terms.stores[truststore.TypeTSA]) > 0
	if p.terms.level.AuthenticTimestamp == verify.Enforce && !hasTime {
		for _, certificate := range info.CertificateChain {
			ends = append(ends, certificate.NotAfter)
		}
	}
	ends = append(ends, p.revocationCheck.until())
	ends = slices.DeleteFunc(ends, time.Time.IsZero)
	if len(ends) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(ends, time.Time.Compare)
}
