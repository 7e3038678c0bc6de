package verifytest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/notation-core-go/signature/cose"
	"github.com/notaryproject/notation-core-go/signature/jws"
	"github.com/notaryproject/tspclient-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Media types of notation's envelopes, also those of the signature's layer.
const (
	NotationJWS  = jws.MediaTypeEnvelope
	NotationCOSE = cose.MediaTypeEnvelope
)

const notationPayloadType = "application/vnd.cncf.notary.payload.v1+json"

// NotaryOptions configure a notation signer.
type NotaryOptions struct {
	// Name is the common name of the signing certificate and part of its
	// issuers' names; "verifytest notary" if empty.
	Name string
	// Clock returns the time of signing; time.Now if nil.
	Clock func() time.Time
	// Algorithm is the kind of all keys, ECDSAP256 if empty. notation does not support Ed25519.
	Algorithm Algorithm
	// NotBefore and NotAfter bound the signing certificate's validity; from a
	// year ago to in ten years if zero.
	NotBefore, NotAfter time.Time
	// SelfSigned makes a chain of one certificate, which is its own root. It has
	// no revocation.
	SelfSigned bool
	// OCSPURL and CRLURL are the addresses of [Notary.OCSP] and [Notary.CRL] (plain HTTP) in the
	// certificates. Empty: no revocation.
	OCSPURL, CRLURL string
}

// Notary signs as notation does, with a certificate chain of its own. It is
// safe for concurrent use.
type Notary struct {
	ca         *CA // nil if the certificate is self-signed
	key        crypto.Signer
	leaf       *x509.Certificate
	chain      []*x509.Certificate // from the leaf to the root
	clock      func() time.Time
	revocation revocation
}

// NewNotary makes a key and a certificate chain of three, or of one.
func NewNotary(o NotaryOptions) (*Notary, error) {
	if o.Name == "" {
		o.Name = "verifytest notary"
	}
	if o.Algorithm == "" {
		o.Algorithm = ECDSAP256
	}
	if o.Algorithm == Ed25519 {
		return nil, errors.New("make a notary: notation knows no Ed25519")
	}
	if o.SelfSigned && (o.OCSPURL != "" || o.CRLURL != "") {
		return nil, errors.New("make a notary: a self-signed certificate cannot be revoked")
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	n := &Notary{clock: o.Clock}
	now := n.now()
	n.revocation.notary = n
	var err error
	n.key, err = newKey(o.Algorithm)
	if err != nil {
		return nil, fmt.Errorf("make a notary: %w", err)
	}
	template := o.template(now)
	if o.SelfSigned {
		self := &issuer{certificate: template, key: n.key}
		n.leaf, err = self.issue(template, n.key.Public())
		n.chain = []*x509.Certificate{n.leaf}
		return n, err
	}
	n.ca, err = newNotaryCA(o, span{from: now.AddDate(-yearsBefore, 0, 0), to: now.AddDate(yearsAfter, 0, 0)})
	if err != nil {
		return nil, err
	}
	n.leaf, err = n.ca.issuing().issue(template, n.key.Public())
	if err != nil {
		return nil, err
	}
	n.chain = append([]*x509.Certificate{n.leaf}, n.ca.chain()...)
	return n, nil
}

// template is the template of the signing certificate.
func (o NotaryOptions) template(now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		// Trust policies name country, state, organisation and common name.
		Subject:     pkix.Name{Country: []string{"XX"}, Province: []string{"None"}, Organization: []string{organization}, CommonName: o.Name},
		NotBefore:   o.NotBefore.Truncate(time.Second),
		NotAfter:    o.NotAfter.Truncate(time.Second),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	if o.NotBefore.IsZero() {
		t.NotBefore = now.AddDate(-1, 0, 0)
	}
	if o.NotAfter.IsZero() {
		t.NotAfter = now.AddDate(10, 0, 0)
	}
	o.locate(t, "issuing")
	return t
}

// newNotaryCA makes an authority with the address of its revocation server in the intermediate.
func newNotaryCA(o NotaryOptions, valid span) (*CA, error) {
	ca, err := newCA(o.Name, o.Algorithm, valid, x509.ExtKeyUsageCodeSigning, false)
	if err != nil || o.OCSPURL == "" && o.CRLURL == "" {
		return ca, err
	}
	c := ca.intermediate.certificate
	again := &x509.Certificate{
		Subject: c.Subject, NotBefore: c.NotBefore, NotAfter: c.NotAfter, KeyUsage: c.KeyUsage, ExtKeyUsage: c.ExtKeyUsage,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	o.locate(again, "root")
	ca.intermediate.certificate, err = ca.root.issue(again, ca.intermediate.key.Public())
	if err != nil {
		return nil, err
	}
	return ca, nil
}

func (o NotaryOptions) locate(template *x509.Certificate, issuer string) {
	if o.OCSPURL != "" {
		template.OCSPServer = []string{o.OCSPURL}
	}
	if o.CRLURL != "" {
		template.CRLDistributionPoints = []string{o.CRLURL + "/" + issuer + ".crl"}
	}
}

func (n *Notary) now() time.Time { return n.clock().Truncate(time.Second).UTC() }

// Root is the certificate for a trust store of type ca or signingAuthority.
func (n *Notary) Root() *x509.Certificate { return n.chain[len(n.chain)-1] }

// RootPEM is Root as PEM.
func (n *Notary) RootPEM() []byte { return certificatesPEM(n.Root()) }

// Certificate is the signing certificate.
func (n *Notary) Certificate() *x509.Certificate { return n.leaf }

// Identity is the signing certificate's subject as trust policies write it.
func (n *Notary) Identity() string {
	s := n.leaf.Subject
	return fmt.Sprintf("x509.subject: C=%s, ST=%s, O=%s, CN=%s", s.Country[0], s.Province[0], s.Organization[0], s.CommonName)
}

// Notation describes a notation signature.
type Notation struct {
	// Target is the manifest: media type, digest and size. Its annotations are
	// replaced by Metadata.
	Target ocispec.Descriptor
	// Metadata is the user metadata.
	Metadata map[string]string
	// MediaType is NotationJWS (if empty) or NotationCOSE.
	MediaType string
	// Time of signing; the current time if zero. It must be within the validity of the signing
	// certificate.
	Time time.Time
	// Expiry is the time between Time and the signature's expiry; zero: never.
	Expiry time.Duration
	// SigningAuthority uses the scheme notary.x509.signingAuthority instead of
	// notary.x509.
	SigningAuthority bool
	// TSA countersigns; none if nil. It is not supported with SigningAuthority.
	TSA *TSA
	// TSATime is the time of the timestamp; Time if zero.
	TSATime time.Time

	// Plugin names a verification plugin, in a critical attribute: verifiers without it must
	// refuse the signature.
	Plugin string
	// OtherTimestamp makes the timestamp one of another signature.
	OtherTimestamp bool
	// WrongSignature signs other bytes than the shown ones.
	WrongSignature bool
	// PayloadType replaces the content type of the payload.
	PayloadType string
}

// Sign writes an envelope.
func (n *Notary) Sign(c Notation) ([]byte, error) {
	if c.SigningAuthority && c.TSA != nil {
		return nil, errors.New("notation: a signing authority vouches for the time itself; no TSA")
	}
	if c.Time.IsZero() {
		c.Time = n.now()
	}
	target := ocispec.Descriptor{
		MediaType: c.Target.MediaType, Digest: c.Target.Digest, Size: c.Target.Size, Annotations: c.Metadata,
	}
	payload, err := json.Marshal(map[string]any{"targetArtifact": target})
	if err != nil {
		return nil, fmt.Errorf("notation: encode the payload: %w", err)
	}
	request := &signature.SignRequest{
		Payload:       signature.Payload{ContentType: notationPayloadType, Content: payload},
		Signer:        notarySigner{notary: n, wrong: c.WrongSignature},
		SigningTime:   c.Time,
		SigningScheme: signature.SigningSchemeX509,
		SigningAgent:  organization,
	}
	if c.Plugin != "" {
		request.ExtendedSignedAttributes = []signature.Attribute{
			{Key: "io.cncf.notary.verificationPlugin", Critical: true, Value: c.Plugin},
		}
	}
	if c.PayloadType != "" {
		request.Payload.ContentType = c.PayloadType
	}
	if c.Expiry != 0 {
		request.Expiry = c.Time.Add(c.Expiry)
	}
	if c.SigningAuthority {
		request.SigningScheme = signature.SigningSchemeX509SigningAuthority
	}
	if c.TSA != nil {
		request.Timestamper = timestamper{claim: c}
		request.TSARootCAs = x509.NewCertPool()
		request.TSARootCAs.AddCert(c.TSA.ca.root.certificate)
	}
	mediaType := c.MediaType
	if mediaType == "" {
		mediaType = NotationJWS
	}
	envelope, err := signature.NewEnvelope(mediaType)
	if err != nil {
		return nil, fmt.Errorf("notation: %w", err)
	}
	data, err := envelope.Sign(request)
	if err != nil {
		return nil, fmt.Errorf("notation: sign: %w", err)
	}
	return data, nil
}

// notarySigner signs as in the Notary Project specification: RSASSA-PSS, or ECDSA with both
// numbers at full width.
type notarySigner struct {
	notary *Notary
	wrong  bool
}

func (s notarySigner) KeySpec() (signature.KeySpec, error) {
	return signature.ExtractKeySpec(s.notary.leaf)
}

func (s notarySigner) Sign(payload []byte) ([]byte, []*x509.Certificate, error) {
	if s.wrong {
		payload = append(slices.Clone(payload), "other bytes"...)
	}
	spec, err := s.KeySpec()
	if err != nil {
		return nil, nil, err
	}
	hash := spec.SignatureAlgorithm().Hash()
	digest := sum(hash, payload)
	chain := s.notary.chain
	switch key := s.notary.key.(type) {
	case *rsa.PrivateKey:
		signed, err := rsa.SignPSS(rand.Reader, key, hash, digest, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		return signed, chain, err
	case *ecdsa.PrivateKey:
		a, b, err := ecdsa.Sign(rand.Reader, key, digest)
		if err != nil {
			return nil, nil, err
		}
		width := (key.Curve.Params().BitSize + 7) / 8
		return append(fixed(a, width), fixed(b, width)...), chain, nil
	}
	return nil, nil, fmt.Errorf("notation: no signature with a key of type %T", s.notary.key)
}

func fixed(n *big.Int, width int) []byte { return n.FillBytes(make([]byte, width)) }

// timestamper answers requests from a TSA in memory.
type timestamper struct{ claim Notation }

func (t timestamper) Timestamp(_ context.Context, r *tspclient.Request) (*tspclient.Response, error) {
	der, err := r.MarshalBinary()
	if err != nil {
		return nil, err
	}
	request, err := timestamp.ParseRequest(der)
	if err != nil {
		return nil, err
	}
	request.Certificates = true
	if t.claim.OtherTimestamp {
		request.HashedMessage = sum(request.HashAlgorithm, []byte("another signature"))
	}
	at := t.claim.TSATime
	if at.IsZero() {
		at = t.claim.Time
	}
	der, err = t.claim.TSA.respond(request, at)
	if err != nil {
		return nil, err
	}
	response := new(tspclient.Response)
	return response, response.UnmarshalBinary(der)
}
