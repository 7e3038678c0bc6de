// Package kms answers: which public key does a key management service hold
// under this URI? It speaks to AWS KMS, Azure Key Vault, Google Cloud KMS and
// HashiCorp Vault (transit engine) through the sigstore project's providers,
// with each provider's own configuration (environment, files) and connections.
// URIs are those of cosign's --key flag.
//
// It stands apart from package trust so that whoever needs no KMS links none of
// the providers' libraries.
//
// All four are tested on loopback, against servers of our own that hold real
// keys and speak the providers' protocols: Vault's HTTP API version 1, AWS's
// JSON protocol 1.1 with Signature Version 4, Azure's REST API with its
// challenge and client-secret tokens, Google's gRPC with tokens that a service
// account signs. What cannot be had on loopback, and is therefore not tested,
// are the other ways to credentials: those of a cloud machine or pod (link-local
// metadata services, federation) and of the clouds' own command-line programs.
//
// Where the services differ: an Azure or Google URI may name a version, a Vault
// or AWS URI cannot, and means the newest; what an older one signed is then no
// longer proved, unless the policy gives the older key beside it. RSA keys are
// believed for PKCS #1 v1.5 signatures, not for RSASSA-PSS.
package kms

import (
	"context"
	"crypto"
	"fmt"
	"regexp"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature/kms"
	// The providers register themselves when they are imported; that is how
	// sigstore's package finds them.
	_ "github.com/sigstore/sigstore/pkg/signature/kms/aws"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/azure"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/gcp"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/hashivault"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// azureHost matches the names of Azure's key vaults and HSMs, in all of its
// clouds. The whole name is matched and not its end, for the provider parses
// "host?.vault.azure.net" as a URL, whose host is another one.
var azureHost = regexp.MustCompile(`(?i)^[a-z0-9-]+\.(vault|managedhsm)\.(azure\.net|usgovcloudapi\.net|azure\.cn)$`)

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

func fetch(ctx context.Context, uri string) (public crypto.PublicKey, err error) {
	defer func() { // a provider takes a service's answer on trust (Azure's: a key without a type)
		if value := recover(); value != nil {
			public, err = nil, fmt.Errorf("the service's answer cannot be read: %v", value)
		}
	}()
	key, err := kms.Get(ctx, uri, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("open the key: %w", &failure{err})
	}
	public, err = key.PublicKey(options.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("fetch the public key: %w", &failure{err})
	}
	return public, nil
}

// maxMessage is the greatest length in bytes of what a provider has to say: the
// libraries put the service's whole answer into their errors.
const maxMessage = 500

// failure is a provider's error on one line, bounded and without credentials.
type failure struct{ err error }

func (f *failure) Error() string {
	text := strings.Join(strings.Fields(redact.Text(f.err.Error())), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}

// Unwrap returns the provider's error.
func (f *failure) Unwrap() error { return f.err }

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
		if azureHost.MatchString(host) {
			return nil
		}
		return fmt.Errorf("%s names the host %s, which is none of Azure's; allow endpoints of your own if it is right", uri, host)
	}
	return nil
}
