package verifytest_test

import (
	"io"
	"log"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	layers "github.com/google/go-containerregistry/pkg/v1/static"
	media "github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	ociremote "github.com/sigstore/cosign/v2/pkg/oci/remote"
	"github.com/sigstore/sigstore/pkg/signature"

	. "github.com/quaymaster/quaymaster/verify/verifytest"
)

// inMemory is a registry that holds one image, reached without a port.
func inMemory(t *testing.T, repository string) (name.Digest, []remote.Option) {
	t.Helper()
	options := []remote.Option{remote.WithTransport(transport{registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))})}
	image, err := empty.Image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewDigest("registry.example/" + repository + "@" + image.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, empty.Image, options...); err != nil {
		t.Fatal(err)
	}
	return ref, options
}

// attach stores a layer where cosign's legacy format has it.
func attach(t *testing.T, ref name.Digest, suffix string, l *Layer, options []remote.Option) {
	t.Helper()
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:       layers.NewLayer(l.Payload, media.MediaType(l.MediaType)),
		Annotations: l.Annotations,
	})
	if err != nil {
		t.Fatal(err)
	}
	hash := ref.Identifier()[len("sha256:"):]
	if err := remote.Write(ref.Context().Tag("sha256-"+hash+suffix), image, options...); err != nil {
		t.Fatal(err)
	}
}

// cosign finds and accepts stored evidence in a registry by itself, in all three
// forms, and refuses signatures by another key.
func TestCosignFromRegistry(t *testing.T) {
	s := Must(New(Options{}))
	ref, options := inMemory(t, "app")
	signer := Must(s.Keyless(Identity{Email: person, Issuer: issuer}))
	image := &SimpleSigning{Reference: ref.Context().Name(), Digest: ref.Identifier()}
	statement := Attestation(ref.Identifier(), "https://example.com/predicate/v1", map[string]any{"passed": true})

	attach(t, ref, ".sig", Must(s.Layer(Claim{Signer: signer, Image: image})), options)
	attach(t, ref, ".att", Must(s.Layer(Claim{Signer: signer, Statement: statement})), options)
	bundled := Must(s.Bundle(Claim{Signer: signer, Statement: statement}))
	stored := ociremote.WithRemoteOptions(options...)
	if err := ociremote.WriteAttestationNewBundleFormat(ref, bundled, statement.PredicateType, stored); err != nil {
		t.Fatal(err)
	}

	for subject, words := range map[string]string{person: "", "else@example.com": "none of the expected identities|no matching CertificateIdentity"} {
		o := together(t, s)
		o.RegistryClientOpts = []ociremote.Option{stored}
		o.Identities = []cosign.Identity{{Issuer: issuer, Subject: subject}}

		o.ClaimVerifier = cosign.SimpleClaimVerifier
		_, _, err := cosign.VerifyImageSignatures(t.Context(), ref, o)
		wantRefusal(t, err, words)

		o.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
		_, _, err = cosign.VerifyImageAttestations(t.Context(), ref, o)
		wantRefusal(t, err, words)

		o.NewBundleFormat = true
		_, _, err = cosign.VerifyImageAttestations(t.Context(), ref, o)
		wantRefusal(t, err, words)
	}
}

// A key and Rekor v2 with a timestamp, as cosign verifies bundles.
func TestCosignKeyBundle(t *testing.T) {
	s := Must(New(Options{}))
	ref, options := inMemory(t, "app")
	right, wrong := Must(KeySigner(KeyOptions{})), Must(KeySigner(KeyOptions{}))
	bundled := Must(s.Bundle(Claim{
		Signer: right, Statement: CosignSignature(ref.Identifier(), nil),
		Records: []Record{{Log: s.Rekor2}}, Stamps: []Stamp{{}},
	}))
	stored := ociremote.WithRemoteOptions(options...)
	if err := ociremote.WriteAttestationNewBundleFormat(ref, bundled, CosignSignPredicateType, stored); err != nil {
		t.Fatal(err)
	}
	for key, words := range map[*Signer]string{right: "", wrong: "no matching attestations"} {
		o := together(t, s)
		o.RegistryClientOpts = []ociremote.Option{stored}
		o.NewBundleFormat, o.UseSignedTimestamps = true, true
		o.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
		var err error
		o.SigVerifier, err = signature.LoadVerifier(key.Public(), key.Hash())
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = cosign.VerifyImageAttestations(t.Context(), ref, o)
		wantRefusal(t, err, words)
	}
}
