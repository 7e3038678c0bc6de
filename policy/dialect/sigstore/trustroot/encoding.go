package trustroot

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"

	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	prototrust "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// MediaType is that of trusted_root.json as it is written here.
const MediaType = "application/vnd.dev.sigstore.trustedroot+json;version=0.1"

// Marshal writes a root the same every time, which protojson does not: it is part
// of an authority's hash.
func Marshal(root *prototrust.TrustedRoot) ([]byte, error) {
	text, err := protojson.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("trusted root: %w", err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("trusted root: %w", err)
	}
	return json.Marshal(value)
}

// Unmarshal reads trusted_root.json.
func Unmarshal(text []byte) (*prototrust.TrustedRoot, error) {
	if len(text) > field.MaxDocument {
		return nil, fmt.Errorf("%d bytes exceed the bound of %d", len(text), field.MaxDocument)
	}
	root := &prototrust.TrustedRoot{}
	if err := protojson.Unmarshal(text, root); err != nil {
		return nil, fmt.Errorf("want trusted_root.json: %w", err)
	}
	if root.GetMediaType() == "" {
		return nil, errors.New("want trusted_root.json: it has no mediaType")
	}
	return root, nil
}

func certificatesOf(chain []*x509.Certificate) *protocommon.X509CertificateChain {
	out := &protocommon.X509CertificateChain{}
	for _, c := range chain {
		out.Certificates = append(out.Certificates, &protocommon.X509Certificate{RawBytes: c.Raw})
	}
	return out
}
