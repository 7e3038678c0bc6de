package keychain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
)

// providers are the credentials of clouds. Whether one has a credential for a repository
// is cached briefly, since asking may require a call to a metadata service.
type providers struct {
	sources map[string]registry.Source
	known   *cache.Cache[provided, bool]
	flights *cache.Flight[provided, bool]
}

type provided struct {
	provider   string
	repository image.Repository
}

func newProviders(sources map[string]registry.Source) (*providers, error) {
	for name, source := range sources {
		if name == "" || source.Name == "" || source.Keychain == nil {
			return nil, fmt.Errorf("new keychain: credential provider %q: want a name and a keychain", name)
		}
	}
	known, err := cache.New(cache.Options[provided, bool]{MaxCost: maxProvided, MaxTTL: providedAge})
	if err != nil {
		return nil, fmt.Errorf("new keychain: %w", err)
	}
	flights, err := cache.NewFlight[provided, bool](providerTimeout)
	if err != nil {
		return nil, fmt.Errorf("new keychain: %w", err)
	}
	return &providers{sources: maps.Clone(sources), known: known, flights: flights}, nil
}

// check refuses unknown provider names.
func (p *providers) check(names []string) error {
	for _, name := range names {
		if _, ok := p.sources[name]; !ok {
			return fmt.Errorf("credential provider %q: want one of %s", shorten(name), strings.Join(slices.Sorted(maps.Keys(p.sources)), ", "))
		}
	}
	return nil
}

// has reports whether a provider has a credential for a repository.
func (p *providers) has(ctx context.Context, name string, repository image.Repository) (bool, error) {
	key := provided{provider: name, repository: repository}
	if has, ok := p.known.Get(key); ok {
		return has, nil
	}
	return p.flights.Do(ctx, key, func(ctx context.Context) (bool, error) {
		has, err := p.request(ctx, name, repository)
		if err != nil {
			return false, err
		}
		age := lackingAge
		if has {
			age = providedAge
		}
		p.known.Put(key, has, age)
		return has, nil
	})
}

// errProvider replaces the error of a provider, which may print secrets.
var errProvider = errors.New("the provider failed, and its text is left out, since it may have a secret")

func (p *providers) request(ctx context.Context, name string, repository image.Repository) (bool, error) {
	authenticator, err := authn.Resolve(ctx, p.sources[name].Keychain, registry.Resource(repository))
	if err != nil {
		return false, errProvider
	}
	config, err := authn.Authorization(ctx, authenticator)
	if err != nil {
		return false, errProvider
	}
	return *config != (authn.AuthConfig{}), nil
}

// search asks providers in order.
func (p *providers) search(ctx context.Context, s *search, names []string) {
	for _, name := range names {
		has, err := p.has(ctx, name, s.repository)
		if err != nil {
			s.missed(p.sources[name].Name, err)
			continue
		}
		if has {
			s.provider = name
			return
		}
	}
}
