package gateway

import (
	"cmp"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/certpool"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/gateway/mirrors"
	"github.com/quaymaster/quaymaster/gateway/replicas"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/registry/keychain/provider"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
	"github.com/quaymaster/quaymaster/scan"
)

// engines makes the gates of the process: that of admission, and those that evaluate running
// workloads. All share the rate limits of registries and the health of mirrors.
type engines struct {
	configuration config.Configuration
	around        lookups.Lookups
	state         *gate.Current
	registry      *registry.Client
	limiter       *ratelimit.Limiter // of registries, for all clients
	targets       *mirrors.Targets   // registries of mirrors
	answered      func(host string, status int, took time.Duration)
	// admission is that of admission; set once the endpoints are active.
	admission *gate.Gate
}

// newEngines prepares the registry client. answered counts the responses of registries.
func newEngines(c config.Configuration, around lookups.Lookups, state *gate.Current, answered func(string, int, time.Duration)) (*engines, error) {
	e := &engines{configuration: c, around: around, state: state, limiter: ratelimit.New(), answered: answered}
	var err error
	e.registry, err = newClient(c.Registries, answered, registry.WithAllowance(e.limiter, false))
	return e, err
}

// forAdmission makes the gate of admission, and its view of registries.
func (e *engines) forAdmission(key []byte, options ...gate.Option) (*gate.Gate, registries, error) {
	c := e.configuration
	opened, err := e.registries(key, c.Registries, e.registry, e.around)
	if err != nil {
		return nil, opened, err
	}
	chooser, err := newChooser(c.Ages, e.targets)
	if err != nil {
		return nil, opened, err
	}
	options = append(options, gate.WithMirrors(chooser, e.around.Pulls), gate.WithStale(time.Duration(*c.Ages.Stale)))
	made, err := newGate(c, opened, e.state, options...)
	return made, opened, err
}

// registries opens registries with the credentials of workloads.
func (e *engines) registries(key []byte, c config.Registries, client *registry.Client, around lookups.Lookups) (registries, error) {
	// The scopes' key is derived from the replicas' key, because its results are visible elsewhere.
	scopes, err := hkdf.Key(sha256.New, key, nil, "quaymaster credential scopes", sha256.Size)
	if err != nil {
		return registries{}, err
	}
	chain, err := newKeychain(c, client, around, scopes)
	return registries{chain}, err
}

// forScan makes the gate of a scan, with clients of its own, so that admission does not wait for its
// requests. It reads the cache of admission first. end is never nil.
func (e *engines) forScan(key []byte, lookups *cluster.Lookups, view *scan.View) (made *gate.Gate, end func(), err error) {
	settings, c := e.configuration.Scan, e.configuration
	c.Registries.PerHost, c.Registries.Total = settings.PerHost, settings.Total
	c.Ages.Tag = config.Duration(scanAge(c.Ages.Tag))
	client, err := newClient(c.Registries, e.answered, registry.WithAllowance(e.limiter, true))
	if err != nil {
		return nil, func() {}, err
	}
	around := e.around
	around.Credentials, around.Accounts = lookups, lookups
	opened, err := e.registries(key, c.Registries, client, around)
	if err != nil {
		return nil, client.Close, err
	}
	paced, err := scan.NewPacer(opened, float64(settings.RegistryQPS))
	if err != nil {
		return nil, client.Close, err
	}
	chooser, err := newChooser(c.Ages, e.targets)
	if err != nil {
		return nil, client.Close, err
	}
	made, err = newGate(c, paced, view, gate.WithTimeout(scanPage), gate.WithMirrors(chooser, cluster.PullSecrets{Lookups: lookups}),
		gate.WithConcurrency(settings.Total), gate.WithPeers(replicas.Local{Gate: e.admission}))
	return made, client.Close, err
}

// scanAge is the lifetime of cached Secrets, service accounts and digests behind tags in a scan:
// long enough for the hundreds of pods of a namespace, which are scanned consecutively.
func scanAge(usual config.Duration) time.Duration { return max(time.Duration(usual), scanAges) }

const (
	scanAges = 5 * time.Minute
	// scanPage bounds the time for one page of objects with possibly only new images.
	scanPage = 10 * time.Minute
)

// newKeychain selects the credentials for registries.
func newKeychain(c config.Registries, client *registry.Client, around lookups.Lookups, key []byte) (*keychain.Keychain, error) {
	providers := map[string]registry.Source{}
	for _, name := range provider.Names() {
		source, err := provider.Named(name, os.Getenv)
		if err != nil {
			return nil, err
		}
		providers[name] = source
	}
	return keychain.New(keychain.Config{
		Registry: client, Secrets: around.Credentials, Accounts: around.Accounts,
		Gateway: c.PullSecrets, Providers: providers, Cloud: c.Providers, Key: key,
	})
}

// newChooser makes the chooser among the targets of mirrors.
func newChooser(c config.Ages, health redirect.Health) (*redirect.Chooser, error) {
	return redirect.New(redirect.WithHealth(health), redirect.WithAges(time.Duration(c.Mirror), time.Duration(c.Tag), time.Duration(c.None)))
}

// newGate makes the engine.
func newGate(c config.Configuration, opened gate.Registries, state gate.State, more ...gate.Option) (*gate.Gate, error) {
	return gate.New(gate.Config{Registries: opened, State: state}, append([]gate.Option{
		gate.WithConcurrency(c.Limits.Images),
		gate.WithAges(gate.Ages{Tag: time.Duration(c.Ages.Tag), Fact: time.Duration(c.Ages.Fact), None: time.Duration(c.Ages.None)}),
	}, more...)...)
}

// registries opens sessions with the credentials of the workload.
type registries struct{ chain *keychain.Keychain }

// Open implements gate.Registries.
func (r registries) Open(ctx context.Context, access gate.Access, repository image.Repository) (gate.Session, error) {
	client, scope, err := r.chain.Open(ctx, keychain.Request{
		Namespace: access.Workload.Namespace, ServiceAccount: access.Workload.ServiceAccount, PullSecrets: access.Workload.PullSecrets,
		PolicySecrets: access.Secrets, PolicyProviders: access.Providers, AllowInsecure: access.AllowInsecure,
	}, repository)
	if err != nil {
		return nil, err
	}
	return engine.NewTenantSession(client, scope, tenantOf(access.Workload.Namespace)), nil
}

// clusterWide is the tenant of cluster-scoped objects; no namespace has such a name.
const clusterWide = "(none)"

// tenantOf returns the tenant of requests to registries.
func tenantOf(namespace string) string { return cmp.Or(namespace, clusterWide) }

// newClient makes the client for registries.
func newClient(c config.Registries, observe func(host string, status int, took time.Duration), more ...registry.Option) (*registry.Client, error) {
	settings := registry.Config{Loopback: c.Loopback, NoPrivate: c.NoPrivate, Hosts: map[string]registry.Host{}}
	if c.CAFile != "" {
		pool, err := certpool.Read(c.CAFile, true)
		if err != nil {
			return nil, fmt.Errorf("registries.caFile: %w", err)
		}
		settings.RootCAs = pool
	}
	for host, one := range c.Hosts {
		made, err := newHost(one)
		if err != nil {
			return nil, fmt.Errorf("registries.hosts[%s]: %w", host, err)
		}
		settings.Hosts[host] = made
	}
	options := []registry.Option{registry.WithProxy(http.ProxyFromEnvironment), registry.WithObserver(observe)}
	if c.PerHost > 0 {
		options = append(options, registry.WithConcurrency(c.PerHost, c.Total))
	}
	return registry.New(settings, append(options, more...)...)
}

func newHost(settings config.Host) (registry.Host, error) {
	host := registry.Host{PlainHTTP: settings.PlainHTTP}
	var err error
	if settings.CAFile != "" {
		host.RootCAs, err = certpool.Read(settings.CAFile, false)
		if err != nil {
			return host, err
		}
	}
	if settings.CertificateFile != "" {
		pair, err := tls.LoadX509KeyPair(settings.CertificateFile, settings.KeyFile)
		if err != nil {
			return host, err
		}
		host.Certificates = []tls.Certificate{pair}
	}
	return host, nil
}
