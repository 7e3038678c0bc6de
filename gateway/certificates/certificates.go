package certificates

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"

	typed "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// Certificates holds the serving certificate, and the key of the replicas.
type Certificates struct {
	*certificate.Source
	own *certificate.Own
}

// newCertificates serves the certificate of the own authority.
func newCertificates(own *certificate.Own) *Certificates {
	return &Certificates{Source: own.Source, own: own}
}

// Config selects the source of the certificate.
type Config struct {
	// Own describes the gateway's own authority, whose store holds the replicas' key in any case.
	Own certificate.OwnConfig
	// Files are those of a certificate that another authority signed; nil for none.
	Files *certificate.FilesConfig
}

// Open makes Certificates, and adds the components that keep them up to date.
func Open(c Config, group *gateway.Group) (*Certificates, error) {
	own, err := certificate.NewOwn(c.Own)
	if err != nil {
		return nil, err
	}
	made := newCertificates(own)
	group.Add("certificate", gateway.Loop(own.Run))
	if c.Files == nil {
		return made, nil
	}
	files, err := certificate.NewFiles(*c.Files)
	if err != nil {
		return nil, err
	}
	made.Source = files.Source
	group.Add("certificate files", gateway.Loop(files.Run))
	return made, nil
}

// NewSecretStore makes a store in a Secret.
func NewSecretStore(secrets typed.SecretInterface, name string) certificate.Store {
	return secretStore{secrets: secrets, name: name}
}

// Refresh reads the own authority again.
func (c *Certificates) Refresh(ctx context.Context) error { return c.own.Refresh(ctx) }

// FollowSecret reloads the certificate when its Secret changes, so that all replicas serve the same
// soon.
func (c *Certificates) FollowSecret(ctx context.Context, secrets gateway.Watcher, name string, log *slog.Logger) {
	gateway.WatchObject(ctx, secrets, name, log, func() {
		if err := c.Refresh(ctx); err != nil && ctx.Err() == nil {
			log.Warn("the certificate's Secret changed and cannot be used", slog.String("error", err.Error()))
		}
	})
}

// Key returns the replicas' key once it is available; false if ctx ended first.
func (c *Certificates) Key(ctx context.Context) ([]byte, bool) {
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
func (c *Certificates) Ready() error {
	if err := c.Source.Ready(); err != nil {
		return err
	}
	if c.own.PeerKey() == nil {
		return fmt.Errorf("the replicas' key: %w", c.own.Ready())
	}
	return nil
}

// Roots implements peers.Roots.
func (c *Certificates) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.Bundle())
	return pool
}
