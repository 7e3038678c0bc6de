package cosign

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/sigstore/cosign/v2/pkg/oci/static"

	"github.com/quaymaster/quaymaster/attest"
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
	// Origin is where the signature was found, for facts and rejections.
	Origin attest.Origin
	// Err is the reason why a part could not be read; nil for none. The signature is then malformed.
	Err error
}

// Blob is a content with a detached signature. Its parts are parsed once, for any number of authorities.
type Blob struct {
	isEmpty bool
	origin  attest.Origin
	digest  func() image.Digest
	parsed  func() (*layer, error)
}

// NewBlob returns a content with its signature. The content must not be modified.
func NewBlob(content []byte, signature Detached) *Blob {
	return &Blob{
		isEmpty: len(content) == 0, origin: signature.Origin,
		digest: sync.OnceValue(func() image.Digest { return image.DigestOf(content) }),
		parsed: sync.OnceValues(func() (*layer, error) { return newDetached(content, signature) }),
	}
}

// layer returns a copy: a verification may leave parts out.
func (b *Blob) layer() (*layer, error) {
	parsed, err := b.parsed()
	if err != nil {
		return nil, err
	}
	own := *parsed
	return &own, nil
}

// VerifyBlob verifies a detached signature over a content of at most MaxPayload bytes, offline and by
// the same terms as Verify. The subject of the fact is the SHA-256 of the content. Annotations of the
// authority are never met: a content has none.
func (v *Verifier) VerifyBlob(ctx context.Context, blob *Blob, authority verify.Authority) (verify.Fact, error) {
	if blob.isEmpty {
		return verify.Fact{}, errors.New("verify cosign signature: the content is empty")
	}
	fact, err := v.prove(ctx, blob.digest(), authority, blob.layer)
	if rejection, ok := errors.AsType[*verify.Rejection](err); ok {
		rejection.Authority, rejection.Origin = authority.Name, blob.origin
	}
	if err != nil {
		return verify.Fact{}, err
	}
	fact.Origin = blob.origin
	return fact, nil
}

func newDetached(content []byte, signature Detached) (*layer, error) {
	if signature.Err != nil {
		return nil, signature.Err
	}
	l := &layer{payload: content, detached: true}
	if err := l.decodeSignature(signature.Signature); err != nil {
		return nil, fmt.Errorf("detached signature: %w", err)
	}
	return l, l.readMaterial(map[string]string{
		static.CertificateAnnotationKey: signature.Certificate, static.BundleAnnotationKey: signature.Entry,
	})
}
