package attestor

import (
	"bytes"
	"errors"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// notary compiles trust stores of notation: level strict, for every identity that they certify,
// as in Kyverno.
func (b *builder) notary(doc *v1alpha1.Notary, path string) (verify.Authority, error) {
	a := verify.Authority{Name: b.name, Notation: &verify.Notation{}}
	if doc.Certs == nil {
		return a, field.Fail(path+".certs", "is missing, so that no signer would be accepted")
	}
	var errs [2]error
	a.Notation.CA, errs[0] = b.store(doc.Certs, path+".certs", false)
	if doc.TSACerts != nil {
		a.Notation.TSA, errs[1] = b.store(doc.TSACerts, path+".tsaCerts", true)
	}
	return a, errors.Join(errs[:]...)
}

// store reads a trust store, and checks it against the Notary Project's trust store
// specification, so that a mistake is found before an image is verified.
func (b *builder) store(doc *v1alpha1.StringOrExpression, path string, timestamps bool) ([]byte, error) {
	text, err := b.certificates(doc, path)
	if err != nil || len(text) == 0 {
		return text, err
	}
	certificates, err := trust.ParseCertificates(text, maxCertificates)
	if err != nil {
		return nil, field.Below(path, err)
	}
	for _, c := range certificates {
		self := bytes.Equal(c.RawSubject, c.RawIssuer) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
		switch {
		case timestamps && (!self || !c.IsCA):
			return nil, field.Fail(path, "certificate %q is no root certificate, which notation asks of timestamp authorities", c.Subject)
		case !self && !c.IsCA:
			return nil, field.Fail(path, "certificate %q is neither a certificate authority's nor self-signed: give the one that issued it", c.Subject)
		}
	}
	return text, nil
}
