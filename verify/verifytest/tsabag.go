package verifytest

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
)

// Misissued returns an authority with a certificate for signing software instead of timestamps,
// by the same issuer. Its timestamps do not prove a time.
func (t *TSA) Misissued() (*TSA, error) {
	key, err := newKey(ECDSAP256)
	if err != nil {
		return nil, fmt.Errorf("misissue a certificate: %w", err)
	}
	leaf, err := t.ca.issuing().issue(&x509.Certificate{
		Subject: t.leaf.Subject, NotBefore: t.leaf.NotBefore, NotAfter: t.leaf.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}, key.Public())
	if err != nil {
		return nil, err
	}
	return &TSA{ca: t.ca, leaf: leaf, key: key, url: t.url}, nil
}

// forged is a self-signed certificate with the authority's name and the usage of timestamps.
func (t *TSA) forged() (*x509.Certificate, error) {
	key, err := newKey(ECDSAP256)
	if err != nil {
		return nil, fmt.Errorf("forge a certificate: %w", err)
	}
	usage, err := timestampUsage()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: t.leaf.Subject, NotBefore: t.leaf.NotBefore, NotAfter: t.leaf.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtraExtensions: []pkix.Extension{usage},
	}
	return (&issuer{certificate: template, key: key}).issue(template, key.Public())
}

// timestampUsage is the extension of RFC 3161, 2.3: the usage is critical and the only
// one.
func timestampUsage() (pkix.Extension, error) {
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("encode the usage of a timestamp certificate: %w", err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}, nil
}

// The path of a certificate in a response (RFC 3161, 2.4.2; RFC 5652, 5.1): the token, its
// content, the signed data, its certificates.
func bagPath() []int { return []int{1, 1, 0, 3} }

// WithCertificate puts a certificate first in the certificates of a response. No signature covers
// them.
func WithCertificate(response []byte, first *x509.Certificate) ([]byte, error) {
	return rewrite(response, bagPath(), func(bag []byte) []byte { return append(first.Raw[:len(first.Raw):len(first.Raw)], bag...) })
}

// rewrite changes the content of the element at a path, each step being the number of a
// child.
func rewrite(der []byte, path []int, change func(content []byte) []byte) ([]byte, error) {
	var element asn1.RawValue
	if _, err := asn1.Unmarshal(der, &element); err != nil {
		return nil, fmt.Errorf("rewrite a timestamp: %w", err)
	}
	content := element.Bytes
	if len(path) == 0 {
		content = change(content)
	} else {
		var out []byte
		rest := content
		for i := 0; len(rest) > 0; i++ {
			var child asn1.RawValue
			after, err := asn1.Unmarshal(rest, &child)
			if err != nil {
				return nil, fmt.Errorf("rewrite a timestamp: %w", err)
			}
			one := child.FullBytes
			if i == path[0] {
				one, err = rewrite(one, path[1:], change)
				if err != nil {
					return nil, err
				}
			}
			out, rest = append(out, one...), after
		}
		content = out
	}
	changed, err := asn1.Marshal(asn1.RawValue{Class: element.Class, Tag: element.Tag, IsCompound: element.IsCompound, Bytes: content})
	if err != nil {
		return nil, fmt.Errorf("rewrite a timestamp: %w", err)
	}
	return changed, nil
}
