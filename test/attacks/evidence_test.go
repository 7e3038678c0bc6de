package attacks

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// released signs as the releaser, with an entry in the log.
func released(s *scene) verifytest.Claim { return verifytest.Claim{Signer: s.release} }

// recorded signs by the key, with these entries in logs.
func recorded(records ...verifytest.Record) func(*scene) verifytest.Claim {
	return func(s *scene) verifytest.Claim { return verifytest.Claim{Signer: s.key, Records: records} }
}

// faulty signs by the key with an entry that has a fault.
func faulty(fault verifytest.LogFault) func(*scene) verifytest.Claim {
	return recorded(verifytest.Record{Fault: fault})
}

// as signs with a change to the releaser's certificate.
func as(change func(*scene, *verifytest.Identity)) func(*scene) verifytest.Claim {
	return func(s *scene) verifytest.Claim {
		return verifytest.Claim{Signer: s.person(func(id *verifytest.Identity) { change(s, id) })}
	}
}

// envelope is notation's signature of an image.
func (s *scene) envelope(of gatetest.Image, how verifytest.Notation) []byte {
	s.t.Helper()
	how.Target = ocispec.Descriptor{MediaType: of.Manifest.MediaType, Digest: digest.Digest(of.Manifest.Digest), Size: of.Manifest.Size}
	how.MediaType = verifytest.NotationJWS
	return testkit.Must(s.notary.Sign(how))(s.t)
}

// refer stores an artifact with an image as its subject.
func (s *scene) refer(subject registrytest.Descriptor, repository, artifactType, mediaType string, content []byte) registrytest.Descriptor {
	s.t.Helper()
	body := testkit.Must(json.Marshal(object{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest, "artifactType": artifactType,
		"config":  s.Registry.PutBlob(repository, artifactType, []byte("{}")),
		"layers":  []any{s.Registry.PutBlob(repository, mediaType, content)},
		"subject": object{"mediaType": subject.MediaType, "digest": subject.Digest, "size": subject.Size},
	}))(s.t)
	return s.Registry.PutManifest(repository, registrytest.DigestOf(body), ocispec.MediaTypeImageManifest, body)
}

func (s *scene) referNotation(image gatetest.Image, envelope []byte) error {
	s.t.Helper()
	s.refer(image.Manifest, image.Repository, "application/vnd.cncf.notary.signature", verifytest.NotationJWS, envelope)
	return nil
}

// unprotected is a JWS envelope with the algorithm none.
func unprotected(s *scene, image gatetest.Image) error {
	var envelope object
	s.check(json.Unmarshal(s.envelope(image, verifytest.Notation{}), &envelope))
	var protected object
	s.check(json.Unmarshal(testkit.Must(base64.RawURLEncoding.DecodeString(envelope["protected"].(string)))(s.t), &protected))
	protected["alg"] = "none"
	envelope["protected"] = base64.RawURLEncoding.EncodeToString(testkit.Must(json.Marshal(protected))(s.t))
	envelope["signature"] = ""
	return s.referNotation(image, testkit.Must(json.Marshal(envelope))(s.t))
}

// crossed makes a signature and puts the annotation of a log entry of another on it.
func crossed(entry func(s *scene, image gatetest.Image) verifytest.Claim) func(*scene, gatetest.Image) error {
	return func(s *scene, image gatetest.Image) error {
		layer := func(claim verifytest.Claim) *verifytest.Layer {
			if claim.Image == nil {
				claim.Image = &verifytest.SimpleSigning{Reference: image.Repository, Digest: image.Manifest.Digest}
			}
			return testkit.Must(s.Sigstore.Layer(claim))(s.t)
		}
		const bundle = "dev.sigstore.cosign/bundle"
		shown := layer(by(s.key))
		shown.Annotations[bundle] = layer(entry(s, image)).Annotations[bundle]
		return s.PutLegacy(image, ".sig", shown)
	}
}

// ago is a time before now.
func ago(d time.Duration) time.Time { return time.Now().Add(-d) }
