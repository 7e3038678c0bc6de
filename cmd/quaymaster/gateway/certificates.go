package gateway

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// certificates are what the gateway serves, and the key of its replicas.
type certificates struct {
	*certificate.Source
	own   *certificate.Own
	tasks []task
}

// newCertificates chooses where the certificate comes from. client is nil without
// a cluster.
func newCertificates(c Configuration, client *cluster.Client, log *slog.Logger) (*certificates, error) {
	store, where, err := certificateStore(c, client)
	if err != nil {
		return nil, err
	}
	own, err := certificate.NewOwn(certificate.OwnConfig{Store: store, Where: where, Names: servingNames(c), Log: log})
	if err != nil {
		return nil, err
	}
	made := &certificates{Source: own.Source, own: own, tasks: []task{forever("certificate", own.Run)}}
	if c.Certificate.CertificateFile == "" {
		return made, nil
	}
	files, err := certificate.NewFiles(certificate.FilesConfig{
		Certificate: c.Certificate.CertificateFile, Key: c.Certificate.KeyFile, CA: c.Certificate.CAFile, Log: log,
	})
	if err != nil {
		return nil, err
	}
	// The Secret keeps the replicas' key all the same.
	made.Source, made.tasks = files.Source, append(made.tasks, forever("certificate files", files.Run))
	return made, nil
}

func certificateStore(c Configuration, client *cluster.Client) (certificate.Store, string, error) {
	switch {
	case client != nil:
		return secretStore{secrets: client.Typed.CoreV1().Secrets(c.Namespace), name: c.Certificate.Secret},
			"Secret " + c.Namespace + "/" + c.Certificate.Secret, nil
	case c.Certificate.Folder != "":
		folder, err := certificate.NewFolder(c.Certificate.Folder)
		return folder, "the folder " + c.Certificate.Folder, err
	}
	return &certificate.Memory{}, "memory", nil
}

// servingName is how callers in the cluster name the gateway.
func servingName(c Configuration) string { return c.Webhooks.Service + "." + c.Namespace + ".svc" }

// servingNames are the names under which callers know the gateway.
func servingNames(c Configuration) []string {
	service := servingName(c)
	names := append([]string{service, service + ".cluster.local"}, c.Certificate.Names...)
	host, _, _ := net.SplitHostPort(c.Listen.Address) //nolint:errcheck // the configuration was checked
	if net.ParseIP(host) != nil && !net.ParseIP(host).IsUnspecified() {
		names = append(names, host)
	}
	if c.Standalone {
		names = append(names, "localhost", "127.0.0.1", "::1")
	}
	if host := hostOf(c.Webhooks.URL); host != "" {
		names = append(names, host)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// wait returns once the replicas' key is there. Until then nothing can be served:
// the API server is asked again and again, and the log says why.
func (c *certificates) wait(ctx context.Context, log *slog.Logger) error {
	for {
		err := c.own.Refresh(ctx)
		if err == nil {
			return nil
		}
		log.Warn("the certificate cannot be had yet", slog.String("error", err.Error()))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// Roots implements peers.Roots.
func (c *certificates) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.Bundle())
	return pool
}
