package cosign

import (
	"context"
	"errors"
	"fmt"

	"github.com/sigstore/cosign/v2/pkg/oci/static"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// Detached is a signature that is stored apart from the signed content, with the parts that
// `cosign sign-blob` writes next to it.
type Detached struct {
	// Signature is the signature over the content, in base64.
	Signature string
	// Certificate is the signing certificate in PEM; empty for a key.
	Certificate string
	// Entry is the log entry with its promise, in JSON as cosign's annotation has it; empty for none.
	Entry string
}

// VerifyBlob verifies a detached signature over a content of at most MaxPayload bytes, offline and by
// the same terms as Verify. The subject of the fact is the SHA-256 of the content. Annotations of the
// authority are never met: a content has none.
func (v *Verifier) VerifyBlob(ctx context.Context, content []byte, signature Detached, authority verify.Authority) (verify.Fact, error) {
	if len(content) == 0 {
		return verify.Fact{}, errors.New("verify cosign signature: the content is empty")
	}
	fact, err := v.prove(ctx, image.DigestOf(content), authority, func() (*layer, error) { return newDetached(content, signature) })
	if rejection, ok := errors.AsType[*verify.Rejection](err); ok {
		rejection.Authority = authority.Name
	}
	if err != nil {
		return verify.Fact{}, err
	}
	return fact, nil
}

func newDetached(content []byte, signature Detached) (*layer, error) {
	l := &layer{payload: content, detached: true}
	if err := l.decodeSignature(signature.Signature); err != nil {
		return nil, fmt.Errorf("detached signature: %w", err)
	}
	return l, l.readMaterial(map[string]string{
		static.CertificateAnnotationKey: signature.Certificate, static.BundleAnnotationKey: signature.Entry,
	})
}
