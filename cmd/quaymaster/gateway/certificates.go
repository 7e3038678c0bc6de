package gateway

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// certificates holds the serving certificate, and the key of the replicas.
type certificates struct {
	*certificate.Source
	own *certificate.Own
}

// newCertificates selects the source of the certificate. in is nil without a cluster.
func newCertificates(c config.Configuration, in *inTheCluster, group *gateway.Group, log *slog.Logger) (*certificates, error) {
	store, where, err := certificateStore(c, in)
	if err != nil {
		return nil, err
	}
	own, err := certificate.NewOwn(certificate.OwnConfig{
		Store: store, Where: where, Names: servingNames(c), Log: log, Follows: !c.Has(config.RoleAdmission), // processes with the role create them
	})
	if err != nil {
		return nil, err
	}
	made := &certificates{Source: own.Source, own: own}
	group.Add("certificate", gateway.Loop(own.Run))
	if c.Certificate.CertificateFile == "" {
		return made, nil
	}
	settings := certificate.FilesConfig{
		Certificate: c.Certificate.CertificateFile, Key: c.Certificate.KeyFile, CA: c.Certificate.CAFile, Log: log,
	}
	if in != nil {
		// Without it the API server and the other replicas would refuse every connection.
		settings.Names = []string{knownAs(c)}
	}
	files, err := certificate.NewFiles(settings)
	if err != nil {
		return nil, err
	}
	// The gateway's own store still holds the replicas' key.
	made.Source = files.Source
	group.Add("certificate files", gateway.Loop(files.Run))
	return made, nil
}

func certificateStore(c config.Configuration, in *inTheCluster) (certificate.Store, string, error) {
	switch {
	case in != nil:
		return secretStore{secrets: in.client.Typed.CoreV1().Secrets(c.Namespace), name: c.Certificate.Secret},
			"Secret " + c.Namespace + "/" + c.Certificate.Secret, nil
	case c.Certificate.Folder != "":
		folder, err := certificate.NewFolder(c.Certificate.Folder)
		return folder, "the folder " + c.Certificate.Folder, err
	}
	return &certificate.Memory{}, "memory", nil
}

// serviceName is the gateway's name within the cluster.
func serviceName(c config.Configuration) string {
	return c.Webhooks.Service + "." + c.Namespace + ".svc"
}

// knownAs is the gateway's name for the API server.
func knownAs(c config.Configuration) string {
	return cmp.Or(config.HostOf(c.Webhooks.URL), serviceName(c))
}

// servingNames are all names of the gateway.
func servingNames(c config.Configuration) []string {
	service := serviceName(c)
	names := append([]string{service, service + ".cluster.local"}, c.Certificate.Names...)
	host, _, _ := net.SplitHostPort(c.Listen.Address) // the configuration was checked
	if address := net.ParseIP(host); host != "" && (address == nil || !address.IsUnspecified()) {
		names = append(names, host)
	}
	if c.Standalone {
		names = append(names, "localhost", "127.0.0.1", "::1")
	}
	if host := config.HostOf(c.Webhooks.URL); host != "" {
		names = append(names, host)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// wait returns the replicas' key once it is available; false if ctx ended first.
func (c *certificates) wait(ctx context.Context) ([]byte, bool) {
	for {
		changed := c.own.Changed()
		if key := c.own.PeerKey(); key != nil {
			return key, true
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-changed:
		}
	}
}

// Ready returns the reason why no certificate can be served.
func (c *certificates) Ready() error {
	if err := c.Source.Ready(); err != nil {
		return err
	}
	if c.own.PeerKey() == nil {
		return fmt.Errorf("the replicas' key: %w", c.own.Ready())
	}
	return nil
}

// Roots implements peers.Roots.
func (c *certificates) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.Bundle())
	return pool
}
