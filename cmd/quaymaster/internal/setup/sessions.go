package setup

import (
	"context"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain/provider"
	"github.com/quaymaster/quaymaster/registry/layout"
)

// online opens sessions with registries.
type online struct {
	client   *registry.Client
	insecure *registry.Client // for policies that allow insecure registries
	secrets  *engine.Resources
	env      func(string) string
}

// Open implements gate.Registries. Pull secrets of a manifest belong to the cluster; the command
// line uses its caller's credentials.
func (o online) Open(_ context.Context, access gate.Access, _ image.Repository) (gate.Session, error) {
	credentials, client := access.Credentials, o.client
	if credentials.AllowInsecure {
		client = o.insecure
	}
	if len(credentials.Providers)+len(credentials.Secrets) > 0 {
		sources, err := o.sources(credentials)
		if err != nil {
			return nil, err
		}
		client, err = client.WithCredentials(sources...)
		if err != nil {
			return nil, err
		}
	}
	return engine.NewSession(client, credentialScope(credentials)), nil
}

// credentialScope names the credentials that a policy configures.
func credentialScope(c policy.Credentials) string {
	if !c.AllowInsecure && len(c.Providers)+len(c.Secrets) == 0 {
		return ""
	}
	return fmt.Sprintf("%t\x00%s\x00%s", c.AllowInsecure, strings.Join(c.Providers, "\x01"), strings.Join(c.Secrets, "\x01"))
}

// sources returns the sources of credentials that a policy names.
func (o online) sources(credentials policy.Credentials) ([]registry.Source, error) {
	var sources []registry.Source
	for _, name := range credentials.Secrets {
		entries, err := o.secrets.PullSecret(name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, entries...)
	}
	for _, name := range credentials.Providers {
		source, err := provider.Named(name, o.env)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// layoutsOnly opens sessions with OCI layouts, which need no credentials.
type layoutsOnly struct{ layout *layout.Set }

// Open implements gate.Registries.
func (o layoutsOnly) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return layoutSession{o.layout}, nil
}

// layoutSession costs nothing.
type layoutSession struct{ *layout.Set }

// Scope implements gate.Session.
func (layoutSession) Scope() string { return "" }

// Cost implements gate.Session.
func (layoutSession) Cost() gate.Cost { return gate.Cost{RateLimitRemaining: -1} }
