package notation

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ocsp"
)

// This file checks responses more strictly than the library. Responses are not encrypted, and an
// attacker with a stolen signing key could forge them.

// about returns the certificate of an OCSP request, and its issuer. The request is the end of the
// path (RFC 6960, A.1). Only a serial number of more than a hundred bytes, where twenty are
// allowed, would make it too long for that.
func (k *revocationRequests) about(path string) (certificate, issuer *x509.Certificate, err error) {
	for i := range len(k.chain) - 1 {
		sent, err := ocsp.CreateRequest(k.chain[i], k.chain[i+1], nil)
		if err != nil {
			return nil, nil, err
		}
		if strings.HasSuffix(path, "/"+url.QueryEscape(base64.StdEncoding.EncodeToString(sent))) {
			return k.chain[i], k.chain[i+1], nil
		}
	}
	return nil, nil, errors.New("it is not known which certificate is asked about")
}

// vouched parses and verifies an OCSP response about a certificate. The signer must be the
// issuer's own key or a responder that the issuer has certified (RFC 6960, 4.2.2.2). Unverified
// responses must not reach notation, which may parse them differently.
func vouched(body []byte, certificate, issuer *x509.Certificate, now time.Time) (*ocsp.Response, error) {
	answer, err := ocsp.ParseResponseForCert(body, certificate, issuer)
	if err != nil {
		return nil, err
	}
	by := answer.Certificate
	switch {
	case by == nil || by.Equal(issuer):
	case !slices.Contains(by.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning):
		return nil, fmt.Errorf("the answer is signed by %s, which is no OCSP responder (OCSPSigning) of %s", by.Subject, issuer.Subject)
	case now.Before(by.NotBefore) || now.After(by.NotAfter):
		return nil, fmt.Errorf("the answer is signed by the responder %s with a certificate that is not valid now", by.Subject)
	}
	return answer, nil
}

// issuingDistributionPoint is the scope of a revocation list (RFC 5280, 5.2.5).
type issuingDistributionPoint struct {
	Point struct {
		Raw      asn1.RawContent // empty: none is named
		FullName []asn1.RawValue `asn1:"optional,tag:0"` // GeneralNames
	} `asn1:"optional,tag:0"`
	OnlyUser      bool           `asn1:"optional,tag:1"`
	OnlyCA        bool           `asn1:"optional,tag:2"`
	Reasons       asn1.BitString `asn1:"optional,tag:3"`
	Indirect      bool           `asn1:"optional,tag:4"`
	OnlyAttribute bool           `asn1:"optional,tag:5"`
}

// speaksOf refuses a list with a scope that does not cover all certificates of the chain with its
// address: their absence from such a list is not significant.
func speaksOf(list *x509.RevocationList, url string, chain []*x509.Certificate) error {
	for _, extension := range list.Extensions {
		switch {
		case extension.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 27}):
			return errors.New("it is a delta, and no complete list")
		case extension.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 28}):
			var scope issuingDistributionPoint
			if rest, err := asn1.Unmarshal(extension.Value, &scope); err != nil || len(rest) > 0 {
				return errors.New("its scope cannot be read (issuingDistributionPoint)")
			}
			for _, certificate := range chain {
				if !slices.Contains(certificate.CRLDistributionPoints, url) {
					continue
				}
				if err := scope.covers(certificate); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s issuingDistributionPoint) covers(certificate *x509.Certificate) error {
	isOwn := func(name asn1.RawValue) bool { // a uniformResourceIdentifier is [6]
		return name.Class == asn1.ClassContextSpecific && name.Tag == 6 && slices.Contains(certificate.CRLDistributionPoints, string(name.Bytes))
	}
	switch {
	case s.OnlyAttribute || s.Indirect || len(s.Reasons.Bytes) > 0:
		return errors.New("it covers only attributes, certificates of other issuers, or some reasons")
	case s.OnlyCA && !certificate.IsCA:
		return errors.New("it covers only certificate authorities")
	case s.OnlyUser && certificate.IsCA:
		return errors.New("it covers no certificate authorities")
	case len(s.Point.Raw) > 0 && !slices.ContainsFunc(s.Point.FullName, isOwn):
		return errors.New("it is that of another address than the certificate names")
	}
	return nil
}
