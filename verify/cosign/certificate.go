package cosign

import (
	"slices"
	"time"

	sgverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// untrusted reports a chain without a trusted root, independently of the time.
func (p *proof) untrusted() *verify.Rejection {
	if p.leaf == nil {
		return nil
	}
	leaf := trust.Checkable(p.leaf)
	if _, err := sgverify.VerifyLeafCertificate(leaf.NotBefore, leaf, p.material); err != nil {
		return &verify.Rejection{
			Code: verify.UntrustedChain, Expected: "a chain to a trusted certificate authority",
			Found: "a certificate of " + p.summary.IssuerName, Err: err,
		}
	}
	return nil
}

// badChain checks the chain at every time of signing.
func (p *proof) badChain() *verify.Rejection {
	leaf := trust.Checkable(p.leaf)
	for _, at := range p.times() {
		if _, err := sgverify.VerifyLeafCertificate(at, leaf, p.material); err != nil {
			return &verify.Rejection{
				Code:     verify.ExpiredCertificate,
				Expected: "a chain that is valid at the time of signing, " + stamp(at),
				Found:    "a certificate " + trust.Validity(leaf), Err: err,
			}
		}
	}
	return nil
}

// times are the trusted times of signing. Where the terms require none, now is one of them.
func (p *proof) times() []time.Time {
	times := []time.Time{p.logged, p.stamped, p.confirmed}
	if p.logged.IsZero() && p.stamped.IsZero() {
		times = append(times, time.Now())
	}
	return slices.DeleteFunc(times, time.Time.IsZero)
}

func (p *proof) badSCT() *verify.Rejection {
	if !p.wantsSCT() {
		return nil
	}
	leaf := trust.Checkable(p.leaf)
	chains, err := sgverify.VerifyLeafCertificate(leaf.NotBefore, leaf, p.material)
	if err != nil {
		return &verify.Rejection{Code: verify.UntrustedChain, Err: err}
	}
	if err = sgverify.VerifySignedCertificateTimestamp(chains, 1, p.material); err == nil {
		return nil
	}
	if !trust.HasSCT(leaf) {
		return &verify.Rejection{Code: verify.NoSCT, Expected: "a certificate timestamp in the certificate", Err: err}
	}
	return &verify.Rejection{Code: verify.BadSCT, Expected: "a certificate timestamp of a trusted log", Err: err}
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
