package verifytest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Media types of the layers that cosign's legacy formats use.
const (
	SimpleSigningMediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	EnvelopeMediaType      = "application/vnd.dsse.envelope.v1+json"
)

// SimpleSigning is the payload of cosign's legacy signatures.
type SimpleSigning struct {
	// Reference is the repository, for example "registry.example/app".
	Reference string
	// Digest is the manifest's digest, "sha256:...".
	Digest string
	// Annotations go to the object "optional"; null if empty, as in cosign.
	Annotations map[string]any
	// Type is "cosign container image signature" if empty.
	Type string
}

// Layer is a layer of a legacy signature or attestation image.
type Layer struct {
	MediaType   string
	Payload     []byte
	Annotations map[string]string
}

func (s *SimpleSigning) encode() ([]byte, error) {
	kind := s.Type
	if kind == "" {
		kind = "cosign container image signature"
	}
	var optional any
	if len(s.Annotations) > 0 {
		optional = s.Annotations
	}
	data, err := json.Marshal(map[string]any{
		"critical": map[string]any{
			"identity": map[string]any{"docker-reference": s.Reference},
			"image":    map[string]any{"docker-manifest-digest": s.Digest},
			"type":     kind,
		},
		"optional": optional,
	})
	if err != nil {
		return nil, fmt.Errorf("encode a simple signing payload: %w", err)
	}
	return data, nil
}

// Layer writes cosign's legacy form of a claim: of a signature (Image or Artifact) or of an
// attestation (Statement or Payload), with cosign's annotations. They can contain one entry of
// Rekor v1, of which only the promise is kept, and one timestamp.
func (s *Sigstore) Layer(c Claim) (*Layer, error) {
	if len(c.Records) > 1 || len(c.Stamps) > 1 {
		return nil, errors.New("layer: there is room for one log entry and one timestamp")
	}
	for _, r := range c.Records {
		if r.Fault == Repeated || r.Log != nil && r.Log.v2 {
			return nil, errors.New("layer: there is no room for a repeated entry or one of Rekor v2")
		}
	}
	all, err := s.seal(c, false)
	if err != nil {
		return nil, err
	}
	l := &Layer{MediaType: SimpleSigningMediaType, Payload: all.payload, Annotations: map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(all.signature),
	}}
	if all.dsse {
		l.MediaType, l.Payload = EnvelopeMediaType, all.envelope
		l.Annotations["dev.cosignproject.cosign/signature"] = ""
		if t := all.predicateType(); t != "" {
			l.Annotations["predicateType"] = t
		}
	}
	if all.leaf != nil {
		l.Annotations["dev.sigstore.cosign/certificate"] = string(certificatesPEM(all.leaf))
	}
	if len(all.issuers) > 0 {
		l.Annotations["dev.sigstore.cosign/chain"] = string(certificatesPEM(all.issuers...))
	}
	return l, all.annotate(l.Annotations)
}

// predicateType is the type of the statement in the payload, if it is one.
func (c *content) predicateType() string {
	var statement struct{ PredicateType string }
	if err := json.Unmarshal(c.payload, &statement); err != nil {
		return ""
	}
	return statement.PredicateType
}

func (s *sealed) annotate(annotations map[string]string) error {
	for _, e := range s.entries {
		data, err := json.Marshal(map[string]any{
			"SignedEntryTimestamp": e.promise,
			"Payload": map[string]any{
				"body":           base64.StdEncoding.EncodeToString(e.body),
				"integratedTime": e.time,
				"logIndex":       e.index,
				"logID":          hex.EncodeToString(e.logID),
			},
		})
		if err != nil {
			return fmt.Errorf("encode a log entry annotation: %w", err)
		}
		annotations["dev.sigstore.cosign/bundle"] = string(data)
	}
	for _, der := range s.stamps {
		data, err := json.Marshal(map[string]any{"SignedRFC3161Timestamp": der})
		if err != nil {
			return fmt.Errorf("encode a timestamp annotation: %w", err)
		}
		annotations["dev.sigstore.cosign/rfc3161timestamp"] = string(data)
	}
	return nil
}
