// Package kms reads public keys from key management services. It supports AWS KMS, Azure Key
// Vault, Google Cloud KMS and HashiCorp Vault (transit engine) through the sigstore project's
// providers, with each provider's own configuration (environment, files) and connections. URIs
// are those of cosign's --key flag.
//
// It is separate from package trust so that a program without KMS does not link the providers'
// libraries.
//
// All four are tested on loopback, against test servers that hold real keys and implement the
// providers' protocols: Vault's HTTP API version 1, AWS's JSON protocol 1.1 with Signature
// Version 4, Azure's REST API with its challenge and client-secret tokens, Google's gRPC with
// tokens that a service account signs. Other sources of credentials are not available on loopback
// and therefore not tested: those of a cloud machine or pod (link-local metadata services,
// federation) and of the clouds' own command-line programs.
//
// The services differ in versions. An Azure or Google URI may name a version. A Vault or AWS URI
// cannot, and means the newest: signatures by an older version then verify only if the policy
// also contains the older key. RSA keys are accepted for PKCS #1 v1.5 signatures, not for
// RSASSA-PSS.
package kms

import (
	"context"
	"crypto"
	"fmt"
	"regexp"
	"strings"

	"github.com/sigstore/sigstore/pkg/signature/kms"
	// The providers register themselves with sigstore's package when they are imported.
	_ "github.com/sigstore/sigstore/pkg/signature/kms/aws"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/azure"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/gcp"
	_ "github.com/sigstore/sigstore/pkg/signature/kms/hashivault"
	"github.com/sigstore/sigstore/pkg/signature/options"

	"github.com/quaymaster/quaymaster/internal/redact"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// azureHost matches the names of Azure's key vaults and HSMs, in all of its clouds. It matches
// the whole name and not its end: the provider parses "host?.vault.azure.net" as a URL with
// another host.
var azureHost = regexp.MustCompile(`(?i)^[a-z0-9-]+\.(vault|managedhsm)\.(azure\.net|usgovcloudapi\.net|azure\.cn)$`)

// Providers looks up keys with sigstore's providers. The zero value is ready.
type Providers struct {
	// AllowAnyEndpoint accepts any host in a URI (awskms://host/..., azurekms://host/...). The
	// author of a policy then chooses which host receives this process's credentials. Without it,
	// AWS is contacted at its own endpoint, and Azure's hosts must be Azure's.
	AllowAnyEndpoint bool
}

var _ trust.KMS = Providers{}

// PublicKey implements trust.KMS. It returns the key of the version in the URI, or else of the
// service's current one.
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
	case <-ctx.Done(): // not every provider honours it
		return nil, context.Cause(ctx)
	}
}

func fetch(ctx context.Context, uri string) (public crypto.PublicKey, err error) {
	defer func() { // providers do not validate responses (Azure's: a key without a type)
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

// maxMessage is the greatest length in bytes of a provider's error: the libraries include the
// service's whole response.
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
