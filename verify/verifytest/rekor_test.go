package verifytest_test

import (
	"crypto"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	"github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	rekor2 "github.com/sigstore/rekor-tiles/v2/pkg/generated/protobuf"
	"github.com/sigstore/rekor-tiles/v2/pkg/types/hashedrekord"
	"github.com/sigstore/rekor/pkg/types"
	_ "github.com/sigstore/rekor/pkg/types/dsse/v0.0.1"
	_ "github.com/sigstore/rekor/pkg/types/hashedrekord/v0.0.1"
	_ "github.com/sigstore/rekor/pkg/types/intoto/v0.0.2"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	. "github.com/quaymaster/quaymaster/verify/verifytest"
)

// written is the first log entry's body in a bundle, and the bundle.
func written(t *testing.T, data []byte) (string, *protobundle.Bundle) {
	t.Helper()
	b := new(protobundle.Bundle)
	if err := protojson.Unmarshal(data, b); err != nil {
		t.Fatal(err)
	}
	return string(b.VerificationMaterial.TlogEntries[0].CanonicalizedBody), b
}

// The bodies of entries are what Rekor itself would have made of a request,
// after having verified it.
func TestRekorWritesTheSame(t *testing.T) {
	s := Must(New(Options{}))
	keyless := Must(s.Keyless(Identity{Email: person, Issuer: issuer}))
	key := Must(KeySigner(KeyOptions{Algorithm: ECDSAP384}))
	statement := Attestation(digest, "https://example.com/predicate/v1", map[string]any{"a": "<&>\u00e4"})

	for _, test := range []struct {
		reason, kind, version string
		signer                *Signer
		claim                 Claim
	}{
		{"message, keyless", "hashedrekord", "0.0.1", keyless, Claim{Artifact: artifact}},
		{"message, key", "hashedrekord", "0.0.1", key, Claim{Artifact: artifact}},
		{"envelope, keyless", "dsse", "0.0.1", keyless, Claim{Statement: statement}},
		{"old envelope, keyless", "intoto", "0.0.2", keyless, Claim{Statement: statement}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.claim.Signer, test.claim.Records = test.signer, []Record{{Kind: test.kind}}
			body, b := written(t, Must(s.Bundle(test.claim)))
			public := test.signer.PublicPEM()
			if test.signer.Certificate() != nil {
				public = test.signer.CertificatePEM()
			}
			properties := types.ArtifactProperties{PublicKeyBytes: [][]byte{public}, PKIFormat: "x509"}
			if m := b.GetMessageSignature(); m != nil {
				properties.SignatureBytes = m.Signature
				properties.ArtifactHash = map[crypto.Hash]string{crypto.SHA256: "sha256:", crypto.SHA384: "sha384:"}[test.signer.Hash()] +
					hex.EncodeToString(m.MessageDigest.Digest)
			} else {
				properties.ArtifactBytes = envelopeJSON(t, b)
			}
			proposed, err := types.NewProposedEntry(t.Context(), test.kind, test.version, properties)
			if err != nil {
				t.Fatal(err)
			}
			entry, err := types.UnmarshalEntry(proposed)
			if err != nil {
				t.Fatal(err)
			}
			want, err := types.CanonicalizeEntry(t.Context(), entry)
			if err != nil {
				t.Fatal(err)
			}
			if test.kind == "intoto" {
				// Rekor hashes the envelope with the keys put in; cosign
				// compares with the envelope as it is stored.
				body, want = withoutHash(t, body), []byte(withoutHash(t, string(want)))
			}
			if body != string(want) {
				t.Errorf("got  %s\nwant %s", body, want)
			}
		})
	}
}

func envelopeJSON(t *testing.T, b *protobundle.Bundle) []byte {
	t.Helper()
	e := b.GetDsseEnvelope()
	data, err := json.Marshal(struct {
		PayloadType string           `json:"payloadType"`
		Payload     []byte           `json:"payload"`
		Signatures  []map[string]any `json:"signatures"`
	}{e.PayloadType, e.Payload, []map[string]any{{"keyid": "", "sig": e.Signatures[0].Sig}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func withoutHash(t *testing.T, body string) string {
	t.Helper()
	var entry struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			Content map[string]any `json:"content"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(body), &entry); err != nil {
		t.Fatal(err)
	}
	delete(entry.Spec.Content, "hash")
	data, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRekor2WritesTheSame(t *testing.T) {
	s := Must(New(Options{}))
	registry, err := signature.NewAlgorithmRegistryConfig([]v1.PublicKeyDetails{
		v1.PublicKeyDetails_PKIX_ECDSA_P256_SHA_256, v1.PublicKeyDetails_PKIX_ECDSA_P384_SHA_384,
	})
	if err != nil {
		t.Fatal(err)
	}
	for reason, signer := range map[string]*Signer{
		"keyless": Must(s.Keyless(Identity{Email: person, Issuer: issuer})),
		"key":     Must(KeySigner(KeyOptions{Algorithm: ECDSAP384})),
	} {
		t.Run(reason, func(t *testing.T) {
			body, b := written(t, Must(s.Bundle(Claim{Signer: signer, Artifact: artifact, Records: []Record{{Log: s.Rekor2}}})))
			mine := new(rekor2.Entry)
			if err := protojson.Unmarshal([]byte(body), mine); err != nil {
				t.Fatal(err)
			}
			entry, err := hashedrekord.ToLogEntry(&rekor2.HashedRekordRequestV002{
				Signature: mine.Spec.GetHashedRekordV002().Signature,
				Digest:    b.GetMessageSignature().MessageDigest.Digest,
			}, registry)
			if err != nil {
				t.Fatal(err)
			}
			data, err := protojson.Marshal(entry)
			if err != nil {
				t.Fatal(err)
			}
			want, err := jsoncanonicalizer.Transform(data)
			if err != nil {
				t.Fatal(err)
			}
			if body != string(want) {
				t.Errorf("got  %s\nwant %s", body, want)
			}
		})
	}
}

// No verifier at hand takes the deprecated type, so it is compared with the
// schema alone.
func TestRekor2DSSE(t *testing.T) {
	s := Must(New(Options{}))
	body, _ := written(t, Must(s.Bundle(Claim{
		Signer:    Must(KeySigner(KeyOptions{})),
		Statement: CosignSignature(digest, nil),
		Records:   []Record{{Log: s.Rekor2, Kind: "dsse"}},
	})))
	entry := new(rekor2.Entry)
	if err := protojson.Unmarshal([]byte(body), entry); err != nil {
		t.Fatal(err)
	}
	data, err := protojson.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := jsoncanonicalizer.Transform(data); err != nil || body != string(want) {
		t.Errorf("got  %s\nwant %s (%v)", body, want, err)
	}
}
