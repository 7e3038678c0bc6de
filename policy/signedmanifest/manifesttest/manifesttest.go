// Package manifesttest writes signed manifests for tests, in the format of package signedmanifest, with the
// signers of package verifytest.
package manifesttest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"

	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Annotations writes the evidence of a signed manifest as k8s-manifest-sigstore 0.5 does, by the names of
// its annotations without the domain: message, signature, and certificate and bundle if there are any.
// The claim's Artifact is the content: YAML, or an archive of YAML files. It can contain one entry of
// Rekor v1.
func Annotations(s *verifytest.Sigstore, c verifytest.Claim) (map[string]string, error) {
	layer, err := s.Layer(c)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	out := map[string]string{"message": packed(c.Artifact), "signature": layer.Annotations["dev.cosignproject.cosign/signature"]}
	for name, from := range map[string]string{"certificate": "dev.sigstore.cosign/certificate", "bundle": "dev.sigstore.cosign/bundle"} {
		if text := layer.Annotations[from]; text != "" {
			out[name] = packed([]byte(text))
		}
	}
	return out, nil
}

// packed is base64 of gzip.
func packed(content []byte) string {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(content) // a buffer takes everything
	_ = writer.Close()
	return base64.StdEncoding.EncodeToString(out.Bytes())
}
