package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
)

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
		pool, err := config.ReadPool(c.CAFile, true)
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
		host.RootCAs, err = config.ReadPool(settings.CAFile, false)
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
