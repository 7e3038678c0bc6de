package verifytest

import (
	"crypto"
	"errors"
	"fmt"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// BundleMediaType is the media type of bundles of version 0.3, which is also
// their artifact type in a registry.
const BundleMediaType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// Bundle writes a Sigstore bundle (JSON) of a claim: a message signature for an artifact, an
// envelope otherwise; with the certificate of a keyless signer (versions 0.1 and 0.2: the chain
// without the root) or the hint of a bare key.
//
// It writes combinations that a version of the format does not allow, if they can be encoded,
// because readers must refuse them.
func (s *Sigstore) Bundle(c Claim) ([]byte, error) {
	mediaType, err := bundleMediaType(c.Version)
	if err != nil {
		return nil, err
	}
	all, err := s.seal(c, true)
	if err != nil {
		return nil, err
	}
	b := &protobundle.Bundle{MediaType: mediaType, VerificationMaterial: all.material(c.Version)}
	if all.dsse {
		b.Content = all.protoEnvelope()
	} else {
		b.Content, err = all.protoMessage()
		if err != nil {
			return nil, err
		}
	}
	data, err := protojson.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode a bundle: %w", err)
	}
	return data, nil
}

func bundleMediaType(version string) (string, error) {
	switch version {
	case "", "0.3":
		return BundleMediaType, nil
	case "0.1", "0.2":
		return "application/vnd.dev.sigstore.bundle+json;version=" + version, nil
	}
	return "", fmt.Errorf("bundle: version %q is not 0.1, 0.2 or 0.3", version)
}

func (s *sealed) material(version string) *protobundle.VerificationMaterial {
	m := &protobundle.VerificationMaterial{}
	switch {
	case s.leaf == nil:
		m.Content = &protobundle.VerificationMaterial_PublicKey{
			PublicKey: &protocommon.PublicKeyIdentifier{Hint: s.signer.hint},
		}
	case version == "0.1" || version == "0.2":
		chain := []*protocommon.X509Certificate{{RawBytes: s.leaf.Raw}}
		for _, c := range s.issuers[:max(0, len(s.issuers)-1)] {
			chain = append(chain, &protocommon.X509Certificate{RawBytes: c.Raw})
		}
		m.Content = &protobundle.VerificationMaterial_X509CertificateChain{
			X509CertificateChain: &protocommon.X509CertificateChain{Certificates: chain},
		}
	default:
		m.Content = &protobundle.VerificationMaterial_Certificate{
			Certificate: &protocommon.X509Certificate{RawBytes: s.leaf.Raw},
		}
	}
	for _, e := range s.entries {
		m.TlogEntries = append(m.TlogEntries, e.proto())
	}
	if len(s.stamps) > 0 {
		m.TimestampVerificationData = &protobundle.TimestampVerificationData{}
		for _, der := range s.stamps {
			m.TimestampVerificationData.Rfc3161Timestamps = append(m.TimestampVerificationData.Rfc3161Timestamps,
				&protocommon.RFC3161SignedTimestamp{SignedTimestamp: der})
		}
	}
	return m
}

func (e *entry) proto() *protorekor.TransparencyLogEntry {
	p := &protorekor.TransparencyLogEntry{
		LogIndex:          e.index,
		LogId:             &protocommon.LogId{KeyId: e.logID},
		KindVersion:       &protorekor.KindVersion{Kind: e.kind, Version: e.version},
		IntegratedTime:    e.time,
		CanonicalizedBody: e.body,
	}
	if e.promise != nil {
		p.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: e.promise}
	}
	if e.proof != nil {
		p.InclusionProof = &protorekor.InclusionProof{
			LogIndex:   e.proof.index,
			RootHash:   e.proof.root,
			TreeSize:   e.proof.size,
			Hashes:     e.proof.hashes,
			Checkpoint: &protorekor.Checkpoint{Envelope: e.proof.checkpoint},
		}
	}
	return p
}

func (c *content) protoEnvelope() *protobundle.Bundle_DsseEnvelope {
	e := &protodsse.Envelope{Payload: c.payload, PayloadType: c.payloadType}
	for _, one := range c.signatures {
		e.Signatures = append(e.Signatures, &protodsse.Signature{Sig: one})
	}
	return &protobundle.Bundle_DsseEnvelope{DsseEnvelope: e}
}

func (c *content) protoMessage() (*protobundle.Bundle_MessageSignature, error) {
	algorithms := map[crypto.Hash]protocommon.HashAlgorithm{
		crypto.SHA256: protocommon.HashAlgorithm_SHA2_256,
		crypto.SHA384: protocommon.HashAlgorithm_SHA2_384,
		crypto.SHA512: protocommon.HashAlgorithm_SHA2_512,
	}
	algorithm, ok := algorithms[c.hash]
	if !ok {
		return nil, errors.New("bundle: a message signature has no name for " + c.hash.String())
	}
	return &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Algorithm: algorithm, Digest: sum(c.hash, c.payload)},
		Signature:     c.signature,
	}}, nil
}
