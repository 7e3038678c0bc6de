package gateway

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cache/redis"
	"github.com/quaymaster/quaymaster/cache/snapshot"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/certpool"
	"github.com/quaymaster/quaymaster/gateway/replicas"
	"github.com/quaymaster/quaymaster/gateway/snapshots"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// shared holds the components that share verified claims with other processes.
type shared struct {
	claims   *snapshots.Keeper  // with this process after a restart; nil without the role admission
	replicas *replicas.Replicas // nil when running standalone
}

// newReplicas makes the component of the other replicas.
func (g *assembly) newReplicas() *replicas.Replicas {
	c := g.configuration
	return replicas.New(replicas.Config{
		Disabled: c.Peers.Disabled, Unverifiable: c.Certificate.CertificateFile != "" && c.Certificate.CAFile == "",
		Leases: g.around.Cluster.Client.Leases, Namespace: c.Namespace, Identity: g.options.Replica,
		Roots: g.certificates, ServerName: knownAs(c), Leader: g.records.Leader, Log: g.log,
	})
}

// peerAddress is the address of this replica for the others; empty if there is none. at is that of
// the endpoints.
func peerAddress(c config.Peers, o Options, at net.Addr) string {
	if c.Address != "" || o.Address == "" {
		return c.Address
	}
	_, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return ""
	}
	return net.JoinHostPort(o.Address, port)
}

// sharedCache describes the shared cache of replicas.
func sharedCache(c config.SharedMemory, to *metrics.Metrics) (replicas.SharedConfig, error) {
	settings := replicas.SharedConfig{
		Config: redis.Config{Address: c.Address, Username: c.Username}, Prefix: c.Prefix, Timeout: time.Duration(c.Timeout), Metrics: to,
	}
	if c.PasswordFile != "" {
		settings.Password = func() (string, error) {
			text, err := os.ReadFile(c.PasswordFile)
			return strings.TrimRight(string(text), "\r\n"), err
		}
	}
	if !c.TLS {
		return settings, nil
	}
	settings.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pool, err := certpool.Read(c.CAFile, false)
		if err != nil {
			return settings, fmt.Errorf("sharedMemory.caFile: %w", err)
		}
		settings.TLS.RootCAs = pool
	}
	return settings, nil
}

// snapshotStore opens the store of snapshots; nil for none. in is nil when running standalone.
func snapshotStore(c config.Configuration, in *lookups.Cluster) (snapshot.Store, error) {
	settings := c.Snapshot
	switch {
	case settings.Disabled || *c.Ages.Stale == 0:
		return nil, nil
	case settings.Folder != "":
		return snapshot.NewFolder(settings.Folder)
	case in == nil:
		return nil, nil
	}
	return snapshots.NewSecretStore(in.Client.Typed.CoreV1().Secrets(c.Namespace)), nil
}
