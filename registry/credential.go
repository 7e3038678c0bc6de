package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/quaymaster/quaymaster/image"
)

// Source is a place that credentials come from.
type Source struct {
	// Name describes the source in messages: "docker configuration", "secret team/pull". It
	// never holds a credential.
	Name string
	// Keychain gives the credential of a repository, or authn.Anonymous.
	Keychain authn.Keychain
	// Foreign: the author of a workload writes the credentials, and can choose ones
	// that make a registry fail. See image.Attributed.
	Foreign bool
}

// Entries is implemented by a Keychain that has its credentials from entries for
// places.
type Entries interface {
	// Entry names the place of the credential of a repository, such as
	// registry.example/team; "" where the Source's name suffices. It never holds a
	// credential.
	Entry(ctx context.Context, target authn.Resource) string
}

// credentials are sources in order.
type credentials []Source

// find returns the credential of a repository that is tried first, and the
// index of its source; -1 means that it is asked anonymously.
func (c credentials) find(ctx context.Context, repository image.Repository) (auth.Credential, int, error) {
	for i := range c {
		credential, err := c.at(ctx, i, repository)
		if err != nil || credential != auth.EmptyCredential {
			return credential, i, err
		}
	}
	return auth.EmptyCredential, -1, nil
}

// credentialOf returns the credential that a question is asked with, and the index of its
// source.
func (r *requester) credentialOf(ctx context.Context, q request) (auth.Credential, int, error) {
	switch {
	case q.turn == anonymous:
		return auth.EmptyCredential, -1, nil
	case q.turn > 0:
		credential, err := r.credentials.at(ctx, q.turn-1, q.repository)
		return credential, q.turn - 1, err
	}
	return r.credentials.find(ctx, q.repository)
}

// at returns the credential that one source has for a repository, or the empty
// one.
func (c credentials) at(ctx context.Context, i int, repository image.Repository) (auth.Credential, error) {
	source := c[i]
	authenticator, err := authn.Resolve(ctx, source.Keychain, resource(repository))
	if err != nil {
		return auth.EmptyCredential, &credentialError{source: source.Name, err: err}
	}
	if authenticator == authn.Anonymous {
		return auth.EmptyCredential, nil
	}
	config, err := authn.Authorization(ctx, authenticator)
	if err != nil {
		return auth.EmptyCredential, &credentialError{source: source.Name, err: err}
	}
	credential, err := fromConfig(config)
	if err != nil {
		return auth.EmptyCredential, &credentialError{source: source.Name, err: err}
	}
	return credential, nil
}

// fromConfig reads the forms that docker's and podman's files have.
func fromConfig(config *authn.AuthConfig) (auth.Credential, error) {
	credential := auth.Credential{
		Username: config.Username, Password: config.Password,
		RefreshToken: config.IdentityToken, AccessToken: config.RegistryToken,
	}
	if config.Auth != "" && credential.Username == "" && credential.Password == "" {
		plain, err := base64.StdEncoding.DecodeString(config.Auth)
		if err != nil {
			return auth.EmptyCredential, errors.New(`"auth" is not base64`)
		}
		user, password, ok := strings.Cut(string(plain), ":")
		if !ok {
			return auth.EmptyCredential, errors.New(`"auth" is not user:password in base64`)
		}
		credential.Username, credential.Password = user, password
	}
	if credential.Username == "<token>" { // a helper's word for an identity token
		credential.Username = ""
	}
	return credential, nil
}

// credentialError reports a source that failed.
type credentialError struct {
	source string
	err    error
}

// Error implements error. The cause's text is left out: helpers may print secrets.
func (e *credentialError) Error() string {
	if failure, is := errors.AsType[*image.Error](e.err); is {
		return "read the credential from " + e.source + ": " + failure.Error()
	}
	return "read the credential from " + e.source + ": it failed, and its text is left out, since it may have a secret"
}

// Unwrap returns the cause.
func (e *credentialError) Unwrap() error { return e.err }

// Resource is a repository as keychains name it: Docker Hub is listed under its old name
// there.
func Resource(repository image.Repository) authn.Resource { return resource(repository) }

// resource is a repository as keychains name it: Docker Hub is listed under its old name
// there.
type resource image.Repository

// String implements authn.Resource.
func (r resource) String() string { return r.RegistryStr() + "/" + image.Repository(r).Path() }

// RegistryStr implements authn.Resource.
func (r resource) RegistryStr() string {
	if registry := image.Repository(r).Registry(); registry != dockerHub {
		return registry
	}
	return "index.docker.io"
}
