package verifytest_test

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	ggcr "github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/cosign/v2/pkg/cosign"
	cosignbundle "github.com/sigstore/cosign/v2/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v2/pkg/oci"
	"github.com/sigstore/cosign/v2/pkg/oci/static"
	"github.com/sigstore/cosign/v2/pkg/types"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/tuf" //nolint:staticcheck // cosign 2 takes its types

	. "github.com/quaymaster/quaymaster/verify/verifytest"
)

// fromLayer gives cosign a layer as it would read it from a registry.
func fromLayer(t *testing.T, l *Layer) oci.Signature {
	t.Helper()
	a := l.Annotations
	options := []static.Option{static.WithAnnotations(a)}
	if cert := a["dev.sigstore.cosign/certificate"]; cert != "" {
		options = append(options, static.WithCertChain([]byte(cert), []byte(a["dev.sigstore.cosign/chain"])))
	}
	if text := a["dev.sigstore.cosign/bundle"]; text != "" {
		var b cosignbundle.RekorBundle
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatal(err)
		}
		options = append(options, static.WithBundle(&b))
	}
	if text := a["dev.sigstore.cosign/rfc3161timestamp"]; text != "" {
		var stamp cosignbundle.RFC3161Timestamp
		if err := json.Unmarshal([]byte(text), &stamp); err != nil {
			t.Fatal(err)
		}
		options = append(options, static.WithRFC3161Timestamp(&stamp))
	}
	newObject := static.NewSignature
	if l.MediaType == EnvelopeMediaType {
		options = append(options, static.WithLayerMediaType(types.DssePayloadType))
	}
	signed, err := newObject(l.Payload, a["dev.cosignproject.cosign/signature"], options...)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// separately is cosign's configuration from the parts that policies give one by
// one.
func separately(t *testing.T, s *Sigstore) *cosign.CheckOpts {
	t.Helper()
	pool := func(pem []byte) *x509.CertPool {
		p := x509.NewCertPool()
		p.AppendCertsFromPEM(pem)
		return p
	}
	keys := func(pem []byte) *cosign.TrustedTransparencyLogPubKeys {
		k := cosign.NewTrustedTransparencyLogPubKeys()
		if err := k.AddTransparencyLogPubKey(pem, tuf.Active); err != nil {
			t.Fatal(err)
		}
		return &k
	}
	tsa, err := cryptoutils.UnmarshalCertificatesFromPEM(s.TSA.ChainPEM())
	if err != nil {
		t.Fatal(err)
	}
	return &cosign.CheckOpts{
		Offline:                     true,
		RootCerts:                   pool(s.CA.RootPEM()),
		IntermediateCerts:           pool(s.CA.IntermediatePEM()),
		RekorPubKeys:                keys(s.Rekor.PublicPEM()),
		CTLogPubKeys:                keys(s.CTLog.PublicPEM()),
		TSACertificate:              tsa[0],
		TSAIntermediateCertificates: tsa[1:2],
		TSARootCertificates:         tsa[2:],
	}
}

func together(t *testing.T, s *Sigstore) *cosign.CheckOpts {
	return &cosign.CheckOpts{Offline: true, TrustedMaterial: trusting(t, s, nil)}
}

// checkLayer verifies with cosign: signatures one by one, attestations as a
// list.
func checkLayer(t *testing.T, l *Layer, o *cosign.CheckOpts) error {
	signed := fromLayer(t, l)
	hash, err := v1.NewHash(digest)
	if err != nil {
		t.Fatal(err)
	}
	if l.MediaType == EnvelopeMediaType {
		o.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
		_, _, err = cosign.VerifyImageAttestation(t.Context(), list{signed}, hash, o)
		return err
	}
	o.ClaimVerifier = cosign.SimpleClaimVerifier
	_, err = cosign.VerifyImageSignature(t.Context(), signed, hash, o)
	return err
}

// list is all of oci.Signatures that verification asks for.
type list struct{ one oci.Signature }

func (l list) Get() ([]oci.Signature, error)            { return []oci.Signature{l.one}, nil }
func (l list) Layers() ([]v1.Layer, error)              { return nil, nil }
func (l list) MediaType() (m ggcr.MediaType, err error) { return }
func (l list) Size() (int64, error)                     { return 0, nil }
func (l list) ConfigName() (h v1.Hash, err error)       { return }
func (l list) ConfigFile() (*v1.ConfigFile, error)      { return nil, nil }
func (l list) RawConfigFile() ([]byte, error)           { return nil, nil }
func (l list) Digest() (h v1.Hash, err error)           { return }
func (l list) Manifest() (*v1.Manifest, error)          { return nil, nil }
func (l list) RawManifest() ([]byte, error)             { return nil, nil }
func (l list) LayerByDigest(v1.Hash) (v1.Layer, error)  { return nil, nil }
func (l list) LayerByDiffID(v1.Hash) (v1.Layer, error)  { return nil, nil }

func TestKeylessLayer(t *testing.T) {
	s := Must(New(Options{}))
	foreign := Must(New(Options{Name: "foreign"}))
	image := &SimpleSigning{Reference: "registry.example/app", Digest: digest, Annotations: map[string]any{"env": "prod"}}
	statement := Attestation(digest, "https://example.com/predicate/v1", map[string]any{"passed": true})
	stamped := func(o *cosign.CheckOpts) { o.UseSignedTimestamps = true }
	unlogged := func(o *cosign.CheckOpts) { o.IgnoreTlog, o.UseSignedTimestamps = true, true }
	annotated := func(value string) func(*cosign.CheckOpts) {
		return func(o *cosign.CheckOpts) { o.Annotations = map[string]any{"env": value} }
	}
	past := Identity{NotBefore: time.Now().AddDate(-1, 0, 0)}

	tests := []struct {
		reason string
		id     Identity
		claim  Claim
		option func(*cosign.CheckOpts)
		refuse string
		// cosign 2.6.5 panics where a trusted root is given and no timestamp
		// of the signature proves true.
		panics bool
	}{
		{reason: "the usual", claim: Claim{Image: image}},
		{reason: "annotation", claim: Claim{Image: image}, option: annotated("prod")},
		{reason: "certificate of the past", id: past, claim: Claim{Image: image}},
		{reason: "timestamp", claim: Claim{Image: image, Stamps: []Stamp{{}}}, option: stamped},
		{reason: "timestamp without log", id: past, claim: Claim{Image: image, NoLog: true, Stamps: []Stamp{{}}}, option: unlogged},
		{reason: "attestation", claim: Claim{Statement: statement}},
		{reason: "attestation, intoto entry", claim: Claim{Statement: statement, Records: []Record{{Kind: "intoto"}}}},
		{reason: "attestation, timestamp without log", claim: Claim{Statement: statement, NoLog: true, Stamps: []Stamp{{}}}, option: unlogged},

		{reason: "no chain", claim: Claim{Image: image, NoChain: true}},
		{reason: "timestamp without certificate", claim: Claim{Image: image, Stamps: []Stamp{{NoCertificate: true}}}, option: stamped},

		{reason: "another annotation", claim: Claim{Image: image}, option: annotated("dev"), refuse: "incorrect annotation"},
		{reason: "another digest", claim: Claim{Image: &SimpleSigning{Digest: other}}, refuse: "digest"},
		{reason: "no entry", claim: Claim{Image: image, NoLog: true}, refuse: "offline verification failed"},
		{reason: "wrong promise", claim: Claim{Image: image, Records: []Record{{Fault: WrongPromise}}}, refuse: "verify"},
		{reason: "entry of another signature", claim: Claim{Image: image, Records: []Record{{Fault: OtherSignature}}}, refuse: "signature in bundle does not match"},
		{reason: "foreign log", claim: Claim{Image: image, Records: []Record{{Log: foreign.Rekor}}}, refuse: "public key not found"},
		{reason: "entry after the certificate's end", claim: Claim{Image: image, Records: []Record{{Time: time.Now().Add(time.Hour)}}}, refuse: "expired"},
		{reason: "timestamp of another signature", claim: Claim{Image: image, Stamps: []Stamp{{OtherSignature: true}}}, option: stamped, refuse: "hashed messages don't match", panics: true},
		{reason: "wrong signature", claim: Claim{Image: image, WrongSignature: true}, refuse: "payload"},
		{reason: "no certificate timestamp", id: Identity{NoSCT: true}, claim: Claim{Image: image}, refuse: "SCT"},
		{reason: "certificate timestamp of a foreign log", id: Identity{CTLog: foreign.CTLog}, claim: Claim{Image: image}, refuse: "ctfe public key not found|threshold of 1"},
		{reason: "foreign authority", id: Identity{CA: foreign.CA}, claim: Claim{Image: image}, refuse: "certificate"},
		{reason: "another person", id: Identity{Email: "else@example.com"}, claim: Claim{Image: image}, refuse: "none of the expected identities"},
		{reason: "attestation of another digest", claim: Claim{Statement: CosignSignature(other, nil)}, refuse: "digest"},
		{reason: "attestation without signatures", claim: Claim{Statement: statement, NoSignatures: true}, refuse: "signature"},
	}
	for _, test := range tests {
		for name, configure := range map[string]func(*testing.T, *Sigstore) *cosign.CheckOpts{"parts": separately, "root": together} {
			if test.panics && name == "root" {
				continue
			}
			t.Run(test.reason+"/"+name, func(t *testing.T) {
				id := test.id
				if id.Email == "" {
					id.Email = person
				}
				id.Issuer = issuer
				test.claim.Signer = Must(s.Keyless(id))
				layer, err := s.Layer(test.claim)
				if err != nil {
					t.Fatal(err)
				}
				o := configure(t, s)
				o.Identities = []cosign.Identity{{Issuer: issuer, Subject: person}}
				if test.option != nil {
					test.option(o)
				}
				if !o.UseSignedTimestamps {
					o.TSACertificate, o.TSAIntermediateCertificates, o.TSARootCertificates = nil, nil, nil
				}
				wantRefusal(t, checkLayer(t, layer, o), test.refuse)
			})
		}
	}
}

func TestKeyLayer(t *testing.T) {
	s := Must(New(Options{}))
	claims := map[string]Claim{
		"signature":            {Image: &SimpleSigning{Reference: "registry.example/app", Digest: digest}},
		"signature, no log":    {Image: &SimpleSigning{Reference: "registry.example/app", Digest: digest}, NoLog: true},
		"attestation":          {Statement: Attestation(digest, "https://example.com/predicate/v1", nil)},
		"attestation, no log":  {Statement: Attestation(digest, "https://example.com/predicate/v1", nil), NoLog: true},
		"cosign's own, in 0.1": {Statement: &Statement{Version: "v0.1", Subjects: []Subject{{Digest: digest}}}},
	}
	for reason, claim := range claims {
		t.Run(reason, func(t *testing.T) {
			right, wrong := Must(KeySigner(KeyOptions{})), Must(KeySigner(KeyOptions{}))
			claim.Signer = right
			layer := Must(s.Layer(claim))
			for _, key := range []*Signer{right, wrong} {
				o := separately(t, s)
				o.IgnoreTlog = claim.NoLog
				o.TSARootCertificates = nil
				public, err := cryptoutils.UnmarshalPEMToPublicKey(key.PublicPEM())
				if err != nil {
					t.Fatal(err)
				}
				o.SigVerifier, err = signature.LoadVerifier(public, key.Hash())
				if err != nil {
					t.Fatal(err)
				}
				if err := checkLayer(t, layer, o); (err == nil) != (key == right) {
					t.Errorf("right key %v: %v", key == right, err)
				}
			}
			if bytes.Contains(layer.Payload, []byte("null")) != (claim.Image != nil) {
				t.Errorf("payload %s: cosign writes null for absent annotations", layer.Payload)
			}
		})
	}
}
