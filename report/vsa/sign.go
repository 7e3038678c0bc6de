package vsa

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Sign returns the statement as a Sigstore bundle: JSON on one line without a line end. It fails
// if this product could not verify the signature, so that an unsuitable key is detected before a
// consumer relies on it.
func (s *Summary) Sign(ctx context.Context, key Key) ([]byte, error) {
	payload, err := s.Statement()
	if err != nil {
		return nil, err
	}
	message := dsse.PAE(attest.MediaTypeInToto, payload)
	signed, public, err := key.Sign(ctx, message)
	if err != nil {
		return nil, fmt.Errorf("sign the summary of %s: %w", s.Image, err)
	}
	known, err := trust.NewPublicKey(public, trust.UsualHash(public))
	if err != nil {
		return nil, fmt.Errorf("sign the summary of %s: %w", s.Image, err)
	}
	if err := known.VerifySignature(bytes.NewReader(signed), bytes.NewReader(message)); err != nil {
		return nil, fmt.Errorf("sign the summary of %s: the signature does not fit the key: %w", s.Image, err)
	}
	return encode(&protobundle.Bundle{
		MediaType: attest.MediaTypeBundle,
		VerificationMaterial: &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{
			PublicKey: &protocommon.PublicKeyIdentifier{Hint: known.Hint},
		}},
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: attest.MediaTypeInToto, Signatures: []*protodsse.Signature{{Sig: signed}},
		}},
	})
}

// encode writes JSON without the random white space of protojson.
func encode(b *protobundle.Bundle) ([]byte, error) {
	loose, err := protojson.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("write a bundle: %w", err)
	}
	var tight bytes.Buffer
	if err := json.Compact(&tight, loose); err != nil {
		return nil, fmt.Errorf("write a bundle: %w", err)
	}
	return tight.Bytes(), nil
}

// Artifact is a signed summary as stored in a registry, with the annotations that cosign adds to
// its own bundles. The subject is the image with media type and size.
func Artifact(bundle []byte, subject image.Descriptor) registry.Artifact {
	return registry.Artifact{
		Subject: subject, Type: attest.MediaTypeBundle, Content: bundle,
		Annotations: map[string]string{
			"dev.sigstore.bundle.content":       "dsse-envelope",
			"dev.sigstore.bundle.predicateType": attest.PredicateVSA,
		},
	}
}
