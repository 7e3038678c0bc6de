package keychain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
)

// Secrets looks Secrets up. It is called for each image of each request, so it should
// answer from a cache.
type Secrets interface {
	// Secret returns the type and content of a Secret, which must not be changed afterwards.
	// An error of the kind image.NotFound (image.KindOf) means that there is no such Secret,
	// any other error that the lookup failed.
	Secret(ctx context.Context, namespace, name string) (kind string, data map[string][]byte, err error)
}

// Accounts looks service accounts up, from a cache and with errors as for Secrets.
type Accounts interface {
	// PullSecrets returns the names of an account's imagePullSecrets.
	PullSecrets(ctx context.Context, namespace, serviceAccount string) ([]string, error)
}

// Config configures the sources of credentials.
type Config struct {
	// Registry is the client that all others derive from; required. Its own
	// credentials are not used.
	Registry *registry.Client
	// Secrets is required where any are named; nil means that those of
	// workloads are not read.
	Secrets Secrets
	// Accounts may be nil: then service accounts are ignored.
	Accounts Accounts
	// Gateway lists Secrets, as namespace/name, for images of all workloads.
	Gateway []string
	// Providers are the cloud's credentials by the names that policies give
	// them: amazon, google, azure, github, default.
	Providers map[string]registry.Source
	// Cloud lists those of Providers that are asked for all workloads, in order.
	Cloud []string
	// Key keys the hashes in scopes: at least 16 random bytes, the same for
	// replicas that are to agree on scopes. Nil means one of this process.
	Key []byte
}

// Request identifies the workload for which an image is read.
type Request struct {
	Namespace      string   // of the workload
	ServiceAccount string   // "" where there is none
	PullSecrets    []string // names of Secrets in Namespace, in the pod's order
	// PolicySecrets are Secrets that the policy names, as namespace/name.
	PolicySecrets []string
	// PolicyProviders are names in Config.Providers, asked before Config.Cloud.
	PolicyProviders []string
	// AllowInsecure permits plain HTTP and unverified TLS.
	AllowInsecure bool
}

// Keychain chooses credentials. It is safe for concurrent use. Make one with
// New.
type Keychain struct {
	config      Config
	insecure    *registry.Client
	gateway     []secretSource
	secretCache *secretCache
	providers   *providers

	making  sync.Mutex // held while a client is made, so that it is made once and fetches one token
	clients *cache.Cache[clientKey, *registry.Client]
}

// clientKey identifies a client. Its tokens are for one credential and one repository;
// evidence elsewhere has tokens of its own.
type clientKey struct {
	scope      string
	repository image.Repository
	foreign    bool // the workload's, and not the same one of the gateway's
}

// New returns a Keychain, or an error for a configuration that means nothing.
func New(config Config) (*Keychain, error) {
	if config.Registry == nil {
		return nil, errors.New("new keychain: want a registry client")
	}
	if config.Secrets == nil && len(config.Gateway) > 0 {
		return nil, errors.New("new keychain: Secrets of the gateway are named, and there is nothing to look them up with")
	}
	if config.Key == nil {
		config.Key = make([]byte, 2*minKey)
		_, _ = rand.Read(config.Key) // never fails
	}
	if len(config.Key) < minKey {
		return nil, fmt.Errorf("new keychain: a key of %d bytes: want at least %d", len(config.Key), minKey)
	}
	gateway, err := secretSources(ofGateway, config.Gateway)
	if err != nil {
		return nil, fmt.Errorf("new keychain: %w", err)
	}
	providers, err := newProviders(config.Providers)
	if err != nil {
		return nil, err
	}
	if err := providers.check(config.Cloud); err != nil {
		return nil, fmt.Errorf("new keychain: %w", err)
	}
	book, err := newSecretCache(config.Secrets, slices.Clone(config.Key))
	if err != nil {
		return nil, err
	}
	clients, err := cache.New(cache.Options[clientKey, *registry.Client]{MaxCost: maxClients, MaxTTL: clientAge})
	if err != nil {
		return nil, fmt.Errorf("new keychain: %w", err)
	}
	config.Cloud = slices.Clone(config.Cloud)
	return &Keychain{
		config: config, insecure: config.Registry.Insecure(), gateway: gateway, secretCache: book, providers: providers, clients: clients,
	}, nil
}

// Open returns the client that reads a repository for a workload, and the scope that
// identifies its credential: workloads with an equal scope have the same access. A scope
// holds no secret. The error is an image.Unavailable or an image.Bound: the credential
// could not be obtained, and the image is not requested.
//
// The client may also be used for other repositories, where a policy keeps evidence. For
// these it uses the same Secret's entries for the host, then the sources of the policy, of
// the gateway and of the cloud; never other Secrets of the workload.
func (k *Keychain) Open(ctx context.Context, request Request, repository image.Repository) (*registry.Client, string, error) {
	if repository.IsZero() {
		return nil, "", fail(repository, errors.New("the repository is empty"))
	}
	policy, err := secretSources(ofPolicy, request.PolicySecrets)
	if err == nil {
		err = k.providers.check(request.PolicyProviders)
	}
	if err == nil && len(policy) > 0 && k.config.Secrets == nil {
		err = fmt.Errorf("%s: Secrets are not read here", policy[0])
	}
	if err != nil {
		return nil, "", fail(repository, err)
	}
	s := search{repository: repository}
	k.workload(ctx, &s, request)
	for _, sources := range [][]secretSource{policy, k.gateway} {
		if !s.found() {
			k.secrets(ctx, &s, sources)
		}
	}
	for _, names := range [][]string{request.PolicyProviders, k.config.Cloud} {
		if !s.found() {
			k.providers.search(ctx, &s, names)
		}
	}
	// A Secret that the gateway may never read does not affect public images: the request is
	// sent without it, and a refusal is then of that kind.
	if kind := doubtOf(s.failedLookups); !s.found() && len(s.failedLookups) > 0 && kind != image.Refused {
		failure := fail(repository, errors.Join(s.failedLookups...))
		failure.Kind = kind
		return nil, "", failure
	}
	scope := k.scope(&s, request)
	client, err := k.client(clientKey{scope: scope, repository: repository, foreign: s.isForeign()}, &s, request, policy)
	if err != nil {
		return nil, "", fail(repository, err)
	}
	return provenance(client, &s), scope, nil
}

// fail reports a credential that could not be obtained.
func fail(repository image.Repository, err error) *image.Error {
	return &image.Error{Kind: image.Unavailable, Op: "look for the credential of", On: repository.String(), Err: err}
}

// doubtOf is the kind of the failed lookups together. The author of the workload chooses
// the names in it: if that is part of the cause, the kind is not image.Unavailable.
func doubtOf(failed []error) image.Kind {
	kind := image.Unavailable
	for _, err := range failed {
		switch image.KindOf(err) {
		case image.Bound:
			return image.Bound
		case image.Refused:
			kind = image.Refused
		}
	}
	return kind
}

// anonymous is the scope without credential.
const anonymous = registry.Anonymous

// scope identifies the selected credential, the other Secrets of the policy for evidence
// in other repositories, and whether TLS is insecure. A provider is identified by name and
// not by its password, which changes by the hour: it is the gateway's own identity.
func (k *Keychain) scope(s *search, request Request) string {
	scope := anonymous
	switch bounds := s.bounds(); {
	case len(bounds) == 1:
		scope = bounds[0].scope
	case len(bounds) > 1:
		scopes := make([]string, len(bounds))
		for i, b := range bounds {
			scopes[i] = b.scope
		}
		scope = k.secretCache.hash(scopes...)
	case s.provider != "":
		scope = "provider " + s.provider
	}
	if len(request.PolicySecrets)+len(request.PolicyProviders) > 0 {
		named := append([]string{fmt.Sprint(len(request.PolicySecrets))}, request.PolicySecrets...)
		scope += " with " + k.secretCache.hash(append(named, request.PolicyProviders...)...)
	}
	if request.AllowInsecure {
		scope += " insecure"
	}
	return scope
}

// client returns the client for a scope, the same one each time, since it caches tokens.
func (k *Keychain) client(key clientKey, s *search, request Request, policy []secretSource) (*registry.Client, error) {
	if known, ok := k.clients.Get(key); ok {
		return known, nil
	}
	k.making.Lock()
	defer k.making.Unlock()
	if known, ok := k.clients.Get(key); ok {
		return known, nil
	}
	base := k.config.Registry
	if request.AllowInsecure {
		base = k.insecure
	}
	made, err := base.WithCredentials(k.sources(s, request, policy)...)
	if err != nil {
		return nil, err
	}
	made = made.From(registry.Provenance{Advice: adviceAnonymous}) // once, and not for each request
	k.clients.Put(key, made, clientAge)
	return made, nil
}

// sources are the credentials that were found for the repository, and those for the repositories of
// evidence.
func (k *Keychain) sources(s *search, request Request, policy []secretSource) []registry.Source {
	var sources []registry.Source
	for _, f := range s.choices() {
		sources = append(sources, registry.Source{Name: f.source.String(), Keychain: choice{of: f.bound, rank: f.rank}, Foreign: f.source.isForeign()})
	}
	if s.provider != "" {
		sources = append(sources, k.providers.sources[s.provider])
	}
	var others []registry.Source
	for _, p := range slices.Concat(policy, k.gateway) {
		others = append(others, ranks(p.String(), lookup{secretCache: k.secretCache, name: p.secret}, maxTried+1)...)
	}
	for _, name := range slices.Concat(request.PolicyProviders, k.config.Cloud) {
		others = append(others, k.providers.sources[name])
	}
	home := s.repository.String()
	for _, other := range others {
		other.Keychain = elsewhere{repository: home, keychain: other.Keychain}
		sources = append(sources, other)
	}
	return sources
}

// provenance adds to the client the origin of its credential, and the Secrets without use.
func provenance(client *registry.Client, s *search) *registry.Client {
	if len(s.credentials)+len(s.notes)+len(s.failedLookups) == 0 {
		return client // it has the provenance already
	}
	p := registry.Provenance{Notes: s.notes, Advice: adviceAnonymous}
	for _, f := range s.choices() {
		p.Sources = append(p.Sources, f.source.String())
	}
	texts := make([]string, len(s.failedLookups))
	for i, err := range s.failedLookups {
		texts[i] = err.Error()
	}
	p.FailedLookups, p.Doubt = strings.Join(texts, "; "), doubtOf(s.failedLookups)
	return client.From(p)
}

const adviceAnonymous = "no credential was found for it; if it exists, give the pod an imagePullSecret for that registry"
