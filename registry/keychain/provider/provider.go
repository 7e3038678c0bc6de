// Package provider gives the credentials of cloud registries: those of Amazon, Azure, GitHub and
// Google, and of docker's configuration.
package provider

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	ecr "github.com/awslabs/amazon-ecr-credential-helper/ecr-login"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/github"
	"github.com/google/go-containerregistry/pkg/v1/google"

	"github.com/quaymaster/quaymaster/registry"
)

// Named returns the credentials of a cloud, by the name that Kyverno's policies use. Each
// applies to its own registries and to no other host. Env reads an environment variable; the
// libraries of the clouds read theirs themselves.
func Named(name string, env func(string) string) (registry.Source, error) {
	source := registry.Source{Name: "the credential provider " + name}
	switch name {
	case "default":
		return DockerConfiguration(), nil
	case "google":
		source.Keychain = &googleCredential{}
	case "amazon":
		source.Keychain = authn.NewKeychainFromHelper(ecr.NewECRHelper(ecr.WithLogger(io.Discard)))
	case "azure":
		source.Keychain = &azureCredential{env: env}
	case "github":
		source.Keychain = github.Keychain
	default:
		return source, fmt.Errorf("credential provider %q: want default, google, amazon, azure or github", name)
	}
	return source, nil
}

// Names are the names that Named accepts.
func Names() []string { return []string{"default", "google", "amazon", "azure", "github"} }

// DockerConfiguration gives the credentials of the caller's docker and podman
// files and their helpers.
func DockerConfiguration() registry.Source {
	return registry.Source{Name: "the docker configuration", Keychain: authn.DefaultKeychain}
}

// googleCredential returns the environment's credentials for Google's registries. Google's own
// keychain binds the credential to the context of the first request, whose end may stop the
// renewal of tokens. It also caches the absence of a credential forever, even after a transient
// failure.
type googleCredential struct {
	mu    sync.Mutex
	found authn.Authenticator
}

// Resolve implements authn.Keychain.
func (g *googleCredential) Resolve(target authn.Resource) (authn.Authenticator, error) {
	host := target.RegistryStr()
	isWithin := func(domain string) bool { return strings.HasSuffix(host, domain) }
	if host != "gcr.io" && !slices.ContainsFunc([]string{".gcr.io", ".pkg.dev", ".google.com"}, isWithin) {
		return authn.Anonymous, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, find := range []func(context.Context) (authn.Authenticator, error){google.NewEnvAuthenticator, google.NewGcloudAuthenticator} {
		if g.found != nil {
			return g.found, nil
		}
		if found, err := find(context.Background()); err == nil && found != authn.Anonymous {
			g.found = found
		}
	}
	if g.found == nil {
		return authn.Anonymous, nil
	}
	return g.found, nil
}
