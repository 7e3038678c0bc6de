package verifytest

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
	"github.com/google/certificate-transparency-go/x509util"
)

// CTLog is a certificate transparency log. A signed certificate timestamp inside the leaf
// certificate is its promise to record it.
type CTLog struct {
	key   crypto.Signer
	id    [sha256.Size]byte
	url   string
	valid span
}

func newCTLog(url string, valid span) (*CTLog, error) {
	// RFC 6962 allows P-256 and RSA; every verifier supports the former.
	key, err := newKey(ECDSAP256)
	if err != nil {
		return nil, fmt.Errorf("make the key of a certificate log: %w", err)
	}
	return &CTLog{key: key, id: sha256.Sum256(publicDER(key.Public())), url: url, valid: valid}, nil
}

// URL is the log's address in trusted roots; nothing listens there.
func (l *CTLog) URL() string { return l.url }

// PublicPEM is the public key of the log.
func (l *CTLog) PublicPEM() []byte { return publicPEM(l.key.Public()) }

// ID is the log's ID, in hexadecimal.
func (l *CTLog) ID() string { return hex.EncodeToString(l.id[:]) }

// timestamp promises to record a certificate. tbs is its to-be-signed part without the extension
// of timestamps.
func (l *CTLog) timestamp(issuer *x509.Certificate, tbs []byte, at time.Time, wrong bool) (*ct.SignedCertificateTimestamp, error) {
	sct := ct.SignedCertificateTimestamp{
		SCTVersion: ct.V1,
		LogID:      ct.LogID{KeyID: l.id},
		Timestamp:  uint64(at.UnixMilli()),
	}
	entry := ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		Version:  ct.V1,
		LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{
			Timestamp: sct.Timestamp,
			EntryType: ct.PrecertLogEntryType,
			PrecertEntry: &ct.PreCert{
				IssuerKeyHash:  sha256.Sum256(issuer.RawSubjectPublicKeyInfo),
				TBSCertificate: tbs,
			},
		},
	}}
	input, err := ct.SerializeSCTSignatureInput(sct, entry)
	if err != nil {
		return nil, fmt.Errorf("serialise a certificate timestamp: %w", err)
	}
	if wrong {
		input = append(input, 0)
	}
	signature, err := l.key.Sign(rand.Reader, sum(crypto.SHA256, input), crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate timestamp: %w", err)
	}
	sct.Signature = ct.DigitallySigned{
		Algorithm: tls.SignatureAndHashAlgorithm{Hash: tls.SHA256, Signature: tls.ECDSA},
		Signature: signature,
	}
	return &sct, nil
}

// sctExtension is the certificate extension with a list of timestamps.
func sctExtension(timestamps []*ct.SignedCertificateTimestamp) (pkix.Extension, error) {
	list, err := x509util.MarshalSCTsIntoSCTList(timestamps)
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("list certificate timestamps: %w", err)
	}
	raw, err := tls.Marshal(*list)
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("encode the list of certificate timestamps: %w", err)
	}
	value, err := asn1.Marshal(raw)
	if err != nil {
		return pkix.Extension{}, fmt.Errorf("encode the extension of certificate timestamps: %w", err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2}, Value: value}, nil
}
