package notation

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-go/verifier/trustpolicy"
	"github.com/notaryproject/notation-go/verifier/truststore"
	"github.com/notaryproject/tspclient-go"

	"github.com/quaymaster/quaymaster/verify"
)

// badTime returns the reason why notation's check of the authentic timestamp failed. notation
// reports only a text, so the steps are repeated up to the one that fails.
func (p *proof) badTime(ctx context.Context, err error) error {
	info := p.signed.info
	if !p.wantsToken() {
		return p.reject(verify.ExpiredCertificate, err)
	}
	if len(info.UnsignedAttributes.TimestampSignature) == 0 {
		return p.reject(verify.NoTimestamp, err)
	}
	stamp, terr := p.timestamp(ctx)
	if terr != nil {
		return p.reject(verify.BadTimestamp, err)
	}
	for _, certificate := range info.CertificateChain {
		if !stamp.BoundedAfter(certificate.NotBefore) || !stamp.BoundedBefore(certificate.NotAfter) {
			return p.reject(verify.ExpiredCertificate, err)
		}
	}
	if p.revocationCheck.timestamper.asked {
		return p.notCleared(p.revocationCheck.timestamper, err)
	}
	return p.reject(verify.BadTimestamp, err)
}

// wantsToken reports whether a timestamp authority must prove the time of signing.
func (p *proof) wantsToken() bool {
	return p.signed.info.SignedAttributes.SigningScheme == signature.SigningSchemeX509 && len(p.terms.stores[truststore.TypeTSA]) > 0
}

// timestamp verifies the countersignature and returns its time.
func (p *proof) timestamp(ctx context.Context) (*tspclient.Timestamp, error) {
	token, err := tspclient.ParseSignedToken(p.signed.info.UnsignedAttributes.TimestampSignature)
	if err != nil {
		return nil, err
	}
	tst, err := token.Info()
	if err != nil {
		return nil, err
	}
	stamp, err := tst.Validate(p.signed.info.Signature)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	for _, certificate := range p.terms.stores[truststore.TypeTSA] {
		roots.AddCert(certificate)
	}
	_, err = token.Verify(ctx, x509.VerifyOptions{CurrentTime: stamp.Value, Roots: roots})
	return stamp, err
}

// signingTime returns the trusted time of signing, zero if there is none, after checking it
// against the authority's terms.
func (p *proof) signingTime(ctx context.Context) (time.Time, error) {
	at := p.provedTime(ctx)
	if p.authority.Timestamp.Required && (at.IsZero() || !p.wantsToken()) {
		return time.Time{}, p.miss(verify.NoTimestamp, "a timestamp", "")
	}
	trusted, leaf := at, p.signed.info.CertificateChain[0]
	if !p.wantsToken() && p.authority.IsRetired(leaf) {
		trusted = time.Time{} // a signing authority wrote it with that key, whose holder can write any time
	}
	return at, p.placed(p.authority.Admits(trusted, leaf))
}

// provedTime returns the time from a timestamp authority or a signing authority; zero if there is
// none, or if the check failed and was noted.
func (p *proof) provedTime(ctx context.Context) time.Time {
	for _, result := range p.outcome.VerificationResults {
		if result.Error == nil {
			continue
		}
		if result.Type == trustpolicy.TypeAuthenticTimestamp || result.Type == trustpolicy.TypeAuthenticity {
			return time.Time{}
		}
	}
	if p.wantsToken() {
		stamp, err := p.timestamp(ctx)
		if err != nil {
			return time.Time{}
		}
		return stamp.Value
	}
	at, err := p.signed.info.AuthenticSigningTime()
	if err != nil {
		return time.Time{}
	}
	return at
}

// subjects lists certificates in a message, the first few of them.
func subjects(certificates []*x509.Certificate) string {
	const most = 3
	if len(certificates) == 0 {
		return "(the policy gives none)"
	}
	var names []string
	for _, certificate := range certificates[:min(most, len(certificates))] {
		names = append(names, certificate.Subject.String())
	}
	if more := len(certificates) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, "; ")
}
