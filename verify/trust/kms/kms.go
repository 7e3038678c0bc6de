// Package kms answers: which public key does a key management service hold
// under this URI? It speaks to AWS KMS, Azure Key Vault, Google Cloud KMS and
// HashiCorp Vault through the sigstore project's providers, with each
// provider's own configuration (environment, files) and connections.
//
// It stands apart from package trust so that whoever needs no KMS links none of
// the providers' libraries.
package kms

import (
	"context"
	"crypto"
	"fmt"

	"github.com/sigstore/sigstore/pkg/signature/kms"
	// The providers register themselves when they are imported; that is how
	// sigstore's package finds them.
	_ "github.com/sigstore/sigstore/pkg/signature/kms/aws"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/azure"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/gcp"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/hashivault"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/quaymaster/quaymaster/verify/trust"
)

// Providers looks keys up with sigstore's providers. Its zero value is ready.
type Providers struct{}

var _ trust.KMS = Providers{}

// PublicKey implements trust.KMS. The version that the URI names is asked for,
// else the service's current one.
func (Providers) PublicKey(ctx context.Context, uri string) (crypto.PublicKey, error) {
	key, err := kms.Get(ctx, uri, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("open the key: %w", err)
	}
	public, err := key.PublicKey(options.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("fetch the public key: %w", err)
	}
	return public, nil
}
