package notation

import (
	"fmt"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/verify"
)

// Claimed returns the holder of the certificate in a signature envelope. Nothing is verified: any user
// with push access may write it.
func Claimed(evidence attest.Evidence) (signer verify.Signer, err error) {
	p := &proof{evidence: evidence, terms: &terms{level: verify.Level{Authenticity: verify.Skip}}}
	defer func() {
		if recovered := recover(); recovered != nil { // ASN.1, CBOR and JSON parsers read untrusted bytes
			signer, err = verify.Signer{}, fmt.Errorf("reading it panicked: %v", recovered)
		}
	}()
	if err := p.open(); err != nil {
		return verify.Signer{}, err
	}
	if len(p.signed.info.CertificateChain) == 0 {
		return verify.Signer{}, nil
	}
	leaf := p.signed.info.CertificateChain[0]
	return verify.Signer{Subject: leaf.Subject.String(), Issuer: leaf.Issuer.String()}, nil
}
