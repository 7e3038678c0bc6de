package notation_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/notaryproject/notation-core-go/signature"
	"github.com/notaryproject/tspclient-go"
	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	mediaTypeJWS  = "application/jose+json"
	mediaTypeCOSE = "application/cose"
	payloadType   = "application/vnd.cncf.notary.payload.v1+json"
)

// party is a certificate with its key and its issuers.
type party struct {
	chain []*x509.Certificate // the party's own first, the root last
	key   *ecdsa.PrivateKey
}

func (p *party) certificate() *x509.Certificate { return p.chain[0] }

func (p *party) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.certificate().Raw})
}

func name(common string) pkix.Name {
	return pkix.Name{CommonName: common, Organization: []string{"example"}, Country: []string{"US"}, Province: []string{"WA"}}
}

// newCA makes a root certificate.
func newCA(t testing.TB, common string) *party {
	t.Helper()
	return issue(t, nil, &x509.Certificate{
		Subject: name(common), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	})
}

// newSigner makes a certificate for signing images.
func newSigner(t testing.TB, ca *party, common string, change ...func(*x509.Certificate)) *party {
	t.Helper()
	template := &x509.Certificate{
		Subject: name(common), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	for _, c := range change {
		c(template)
	}
	return issue(t, ca, template)
}

func issue(t testing.TB, issuer *party, template *x509.Certificate) *party {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-48 * time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(48 * time.Hour)
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	parent, parentKey := template, key
	if issuer != nil {
		parent, parentKey = issuer.certificate(), issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	p := &party{chain: []*x509.Certificate{certificate}, key: key}
	if issuer != nil {
		p.chain = append(p.chain, issuer.chain...)
	}
	return p
}

// tsa is a timestamp authority that states the given time. It implements
// tspclient.Timestamper.
type tsa struct {
	*party
	ca     *party
	at     time.Time
	beside []*x509.Certificate // what travels along and signs nothing
}

func newTSA(t testing.TB, at time.Time, change ...func(*x509.Certificate)) *tsa {
	t.Helper()
	usage, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}})
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject: name("timestamps"), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}
	for _, c := range change {
		c(template)
	}
	ca := newCA(t, "timestamp root")
	return &tsa{party: issue(t, ca, template), ca: ca, at: at}
}

func (s *tsa) Timestamp(_ context.Context, request *tspclient.Request) (*tspclient.Response, error) {
	der, err := request.MarshalBinary()
	if err != nil {
		return nil, err
	}
	asked, err := timestamp.ParseRequest(der)
	if err != nil {
		return nil, err
	}
	token := timestamp.Timestamp{
		HashAlgorithm: asked.HashAlgorithm, HashedMessage: asked.HashedMessage, Nonce: asked.Nonce,
		Time: s.at, Accuracy: time.Second, Policy: asn1.ObjectIdentifier{1, 2, 3},
		AddTSACertificate: true, Certificates: s.chain[1:],
	}
	answer, err := token.CreateResponseWithOpts(s.certificate(), s.key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	for _, c := range s.beside {
		answer, err = verifytest.WithCertificate(answer, c)
		if err != nil {
			return nil, err
		}
	}
	var response tspclient.Response
	return &response, response.UnmarshalBinary(answer)
}

// order is the signed content and its form; zero fields mean the usual.
type order struct {
	by          *party
	mediaType   string
	target      image.Descriptor
	annotations map[string]string
	scheme      signature.SigningScheme
	at, expiry  time.Time
	attributes  []signature.Attribute
	tsa         *tsa
	payloadType string
}

// sign makes an envelope with notation-core-go.
func sign(t testing.TB, o order) attest.Evidence {
	t.Helper()
	if o.mediaType == "" {
		o.mediaType = mediaTypeJWS
	}
	if o.target.Digest.IsZero() {
		o.target = manifest
	}
	if o.scheme == "" {
		o.scheme = signature.SigningSchemeX509
	}
	if o.at.IsZero() {
		o.at = time.Now()
	}
	if o.payloadType == "" {
		o.payloadType = payloadType
	}
	payload, err := json.Marshal(map[string]any{"targetArtifact": ocispec.Descriptor{
		MediaType: o.target.MediaType, Digest: godigest.Digest(o.target.Digest.String()), Size: o.target.Size, Annotations: o.annotations,
	}})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := signature.NewLocalSigner(o.by.chain, o.by.key)
	if err != nil {
		t.Fatal(err)
	}
	request := &signature.SignRequest{
		Payload: signature.Payload{ContentType: o.payloadType, Content: payload},
		Signer:  signer, SigningTime: o.at, Expiry: o.expiry, SigningScheme: o.scheme,
		ExtendedSignedAttributes: o.attributes,
	}
	if o.tsa != nil {
		request.Timestamper = o.tsa
		request.TSARootCAs = x509.NewCertPool()
		request.TSARootCAs.AddCert(o.tsa.ca.certificate())
	}
	writer, err := signature.NewEnvelope(o.mediaType)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := writer.Sign(request)
	if err != nil {
		t.Fatal(err)
	}
	return evidence(o.mediaType, envelope)
}

func evidence(mediaType string, envelope []byte) attest.Evidence {
	return attest.Evidence{
		Format: attest.Notation, Role: attest.Signature, MediaType: mediaType, Payload: envelope,
		Origin: attest.Origin{Repository: repository, Via: "referrers", Manifest: image.DigestOf(envelope)},
	}
}
