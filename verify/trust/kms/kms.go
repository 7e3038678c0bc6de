// Package kms answers: which public key does a key management service hold
// under this URI? It speaks to AWS KMS, Azure Key Vault, Google Cloud KMS and
// HashiCorp Vault (transit engine) through the sigstore project's providers,
// with each provider's own configuration (environment, files) and connections.
//
// It stands apart from package trust so that whoever needs no KMS links none of
// the providers' libraries.
package kms

import (
	"context"
	"crypto"
	"fmt"
	"strings"

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

// azureHosts are the ends of the names of Azure's key vaults and HSMs, in all of
// its clouds.
var azureHosts = [...]string{
	".vault.azure.net", ".managedhsm.azure.net",
	".vault.usgovcloudapi.net", ".managedhsm.usgovcloudapi.net",
	".vault.azure.cn", ".managedhsm.azure.cn",
}

// Providers looks keys up with sigstore's providers. The zero value is ready.
type Providers struct {
	// AllowAnyEndpoint lets a URI name the host that is asked
	// (awskms://host/..., azurekms://host/...) whatever it is, so that whoever
	// writes a policy chooses where this process's credentials are used. Without
	// it AWS is asked at its own endpoint, and Azure's hosts must be Azure's.
	AllowAnyEndpoint bool
}

var _ trust.KMS = Providers{}

// PublicKey implements trust.KMS. The version that the URI names is asked for,
// else the service's current one.
func (p Providers) PublicKey(ctx context.Context, uri string) (crypto.PublicKey, error) {
	if err := p.checkEndpoint(uri); err != nil {
		return nil, err
	}
	type answer struct {
		key crypto.PublicKey
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		key, err := fetch(ctx, uri)
		answers <- answer{key, err}
	}()
	select {
	case a := <-answers:
		return a.key, a.err
	case <-ctx.Done(): // not every provider listens to it
		return nil, context.Cause(ctx)
	}
}

func fetch(ctx context.Context, uri string) (crypto.PublicKey, error) {
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

func (p Providers) checkEndpoint(uri string) error {
	if p.AllowAnyEndpoint {
		return nil
	}
	scheme, rest, _ := strings.Cut(uri, "://")
	host, _, _ := strings.Cut(rest, "/")
	switch scheme {
	case "awskms":
		if host != "" {
			return fmt.Errorf("%s names the endpoint %s; write awskms:///KEY, or allow endpoints of your own", uri, host)
		}
	case "azurekms":
		name := strings.ToLower(host)
		for _, end := range azureHosts {
			if strings.HasSuffix(name, end) {
				return nil
			}
		}
		return fmt.Errorf("%s names the host %s, which is none of Azure's; allow endpoints of your own if it is right", uri, host)
	}
	return nil
}
