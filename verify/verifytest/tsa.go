package verifytest

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/digitorus/timestamp"
)

// TSA is an RFC 3161 timestamp authority.
type TSA struct {
	ca     *CA
	leaf   *x509.Certificate
	key    crypto.Signer
	url    string
	beside []*x509.Certificate // additional certificates in its timestamps
}

func newTSA(name, url string, algorithm Algorithm, valid span) (*TSA, error) {
	ca, err := newCA(name, algorithm, valid, x509.ExtKeyUsageTimeStamping, false)
	if err != nil {
		return nil, err
	}
	ca.url = url
	key, err := newKey(algorithm)
	if err != nil {
		return nil, err
	}
	usage, err := timestampUsage()
	if err != nil {
		return nil, err
	}
	leaf, err := ca.issuing().issue(&x509.Certificate{
		Subject:         pkix.Name{CommonName: name, Organization: []string{organization}},
		NotBefore:       valid.from,
		NotAfter:        valid.to,
		KeyUsage:        x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{usage},
	}, key.Public())
	if err != nil {
		return nil, err
	}
	return &TSA{ca: ca, leaf: leaf, key: key, url: url}, nil
}

// URL is the authority's address in trusted roots; nothing listens there.
func (t *TSA) URL() string { return t.url }

// LeafPEM is the certificate that signs timestamps.
func (t *TSA) LeafPEM() []byte { return certificatesPEM(t.leaf) }

// ChainPEM is the signing certificate and its issuers, the root last.
func (t *TSA) ChainPEM() []byte { return certificatesPEM(t.chain()...) }

// RootPEM is the root certificate.
func (t *TSA) RootPEM() []byte { return t.ca.RootPEM() }

func (t *TSA) chain() []*x509.Certificate {
	return append([]*x509.Certificate{t.leaf}, t.ca.chain()...)
}

func (t *TSA) respond(r *timestamp.Request, at time.Time) ([]byte, error) {
	response := timestamp.Timestamp{
		HashAlgorithm:     r.HashAlgorithm,
		HashedMessage:     r.HashedMessage,
		Nonce:             r.Nonce,
		Time:              at.Truncate(time.Second).UTC(),
		Accuracy:          time.Second,
		Policy:            asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 2},
		AddTSACertificate: r.Certificates,
	}
	if r.Certificates {
		response.Certificates = t.ca.chain()
	}
	der, err := response.CreateResponseWithOpts(t.leaf, t.key, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("make a timestamp: %w", err)
	}
	return der, nil
}

// Stamp describes a timestamp of a claim.
type Stamp struct {
	// TSA signs the timestamp; the Sigstore's own if nil.
	TSA *TSA
	// Time is the time it states; the time of signing if zero.
	Time time.Time
	// NoCertificate omits the authority's certificates from the token, as Sigstore's clients
	// request; verifiers then need them from elsewhere.
	NoCertificate bool
	// OtherSignature makes it a genuine timestamp of another signature.
	OtherSignature bool
	// ForgedCertificate puts a forged certificate before the authority's in the token, with its
	// name and the usage of timestamps, and another key.
	ForgedCertificate bool
	// Beside is a certificate before the authority's in the token, which no signature covers.
	Beside *x509.Certificate
}

func (s *Sigstore) stamp(st Stamp, signature []byte, at time.Time) ([]byte, error) {
	tsa := s.TSA
	if st.TSA != nil {
		tsa = st.TSA
	}
	if !st.Time.IsZero() {
		at = st.Time
	}
	if st.OtherSignature {
		signature = append([]byte("another signature: "), signature...)
	}
	response, err := tsa.respond(&timestamp.Request{
		HashAlgorithm: crypto.SHA256,
		HashedMessage: sum(crypto.SHA256, signature),
		Certificates:  !st.NoCertificate,
	}, at)
	if err != nil {
		return nil, err
	}
	beside := slices.Clone(tsa.beside)
	if st.Beside != nil {
		beside = append(beside, st.Beside)
	}
	if st.ForgedCertificate {
		forged, err := tsa.forged()
		if err != nil {
			return nil, err
		}
		beside = append(beside, forged)
	}
	if st.NoCertificate && len(beside) > 0 {
		return nil, errors.New("stamp: NoCertificate and another certificate exclude each other")
	}
	for _, c := range beside {
		response, err = WithCertificate(response, c)
		if err != nil {
			return nil, err
		}
	}
	return response, nil
}
