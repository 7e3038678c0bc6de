package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain/provider"
	"github.com/quaymaster/quaymaster/registry/layout"
)

// ClientRegistries opens sessions with registries. A policy's own credentials replace those of
// the client.
type ClientRegistries struct {
	client   *registry.Client
	insecure *registry.Client // for policies that allow insecure registries
	secrets  *Resources
	env      func(string) string
}

// NewClientRegistries uses a client. The pull secrets of policies are among the resources, and env
// reads the environment variables of the clouds' credentials.
func NewClientRegistries(client *registry.Client, secrets *Resources, env func(string) string) ClientRegistries {
	return ClientRegistries{client: client, insecure: client.Insecure(), secrets: secrets, env: env}
}

// Open implements gate.Registries. Pull secrets of a manifest belong to the cluster; the command
// line uses its caller's credentials.
func (r ClientRegistries) Open(_ context.Context, access gate.Access, _ image.Repository) (gate.Session, error) {
	credentials, client := access.Credentials, r.client
	if credentials.AllowInsecure {
		client = r.insecure
	}
	if len(credentials.Providers)+len(credentials.Secrets) > 0 {
		sources, err := r.sources(credentials)
		if err != nil {
			return nil, err
		}
		client, err = client.WithCredentials(sources...)
		if err != nil {
			return nil, err
		}
	}
	return NewSession(client, credentialScope(credentials)), nil
}

// credentialScope names the credentials that a policy configures.
func credentialScope(c policy.Credentials) string {
	if !c.AllowInsecure && len(c.Providers)+len(c.Secrets) == 0 {
		return ""
	}
	return fmt.Sprintf("%t\x00%s\x00%s", c.AllowInsecure, strings.Join(c.Providers, "\x01"), strings.Join(c.Secrets, "\x01"))
}

// sources returns the sources of credentials that a policy names.
func (r ClientRegistries) sources(credentials policy.Credentials) ([]registry.Source, error) {
	var sources []registry.Source
	for _, name := range credentials.Secrets {
		entries, err := r.secrets.PullSecret(name)
		if err != nil {
			return nil, err
		}
		sources = append(sources, entries...)
	}
	for _, name := range credentials.Providers {
		source, err := provider.Named(name, r.env)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// LayoutRegistries opens sessions with OCI layouts, which need no credentials.
type LayoutRegistries struct{ Layouts *layout.Set }

// Open implements gate.Registries.
func (r LayoutRegistries) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return layoutSession{r.Layouts}, nil
}

// layoutSession costs nothing.
type layoutSession struct{ *layout.Set }

// Scope implements gate.Session.
func (layoutSession) Scope() string { return "" }

// Cost implements gate.Session.
func (layoutSession) Cost() gate.Cost { return gate.Cost{RateLimitRemaining: -1} }
