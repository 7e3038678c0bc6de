package verifytest

import (
	"crypto/x509"
	"fmt"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	prototrust "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// TrustedRoot returns a trusted_root.json with all parts of this Sigstore, and of others if they
// are given.
func (s *Sigstore) TrustedRoot(others ...*Sigstore) []byte {
	root := &prototrust.TrustedRoot{MediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}
	for _, one := range append([]*Sigstore{s}, others...) {
		root.Tlogs = append(root.Tlogs, one.Rekor.trusted(), one.Rekor2.trusted())
		root.Ctlogs = append(root.Ctlogs, trustedLog(one.CTLog.url, one.CTLog.id[:], one.CTLog.key.Public(), one.CTLog.valid))
		root.CertificateAuthorities = append(root.CertificateAuthorities, one.CA.trusted(one.CA.chain()))
		root.TimestampAuthorities = append(root.TimestampAuthorities, one.TSA.ca.trusted(one.TSA.chain()))
	}
	data, err := protojson.Marshal(root)
	if err != nil { // the content is always valid
		panic(fmt.Sprintf("verifytest: encode a trusted root: %v", err))
	}
	return data
}

func (l *Log) trusted() *prototrust.TransparencyLogInstance {
	return trustedLog(l.url, l.id, l.key.Public(), l.valid)
}

func trustedLog(url string, id []byte, key any, valid span) *prototrust.TransparencyLogInstance {
	details, err := signature.GetDefaultPublicKeyDetails(key)
	if err != nil {
		panic(fmt.Sprintf("verifytest: name the algorithm of a log: %v", err))
	}
	return &prototrust.TransparencyLogInstance{
		BaseUrl:       url,
		HashAlgorithm: protocommon.HashAlgorithm_SHA2_256,
		PublicKey: &protocommon.PublicKey{
			RawBytes:   publicDER(key),
			KeyDetails: details,
			ValidFor:   valid.proto(),
		},
		LogId: &protocommon.LogId{KeyId: id},
	}
}

func (c *CA) trusted(chain []*x509.Certificate) *prototrust.CertificateAuthority {
	subject := c.root.certificate.Subject
	a := &prototrust.CertificateAuthority{
		Subject:   &protocommon.DistinguishedName{Organization: organization, CommonName: subject.CommonName},
		Uri:       c.url,
		CertChain: &protocommon.X509CertificateChain{},
		ValidFor:  span{c.from, c.to}.proto(),
	}
	for _, certificate := range chain {
		a.CertChain.Certificates = append(a.CertChain.Certificates, &protocommon.X509Certificate{RawBytes: certificate.Raw})
	}
	return a
}

func (s span) proto() *protocommon.TimeRange {
	return &protocommon.TimeRange{Start: timestamppb.New(s.from), End: timestamppb.New(s.to)}
}
