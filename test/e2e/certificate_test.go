package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// served returns the certificate that a gateway presents, DER encoded, to a client that
// trusts the authorities.
func served(ctx context.Context, g *gateway.Gateway, authorities []byte) ([]byte, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", g.Configuration.Listen.Address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw, nil
}

// TestCertificateRotation: a leaf that is due is renewed, and a Secret that is
// lost is made anew, without a call that fails. It runs beside tests that do not
// use the shared control plane, for the Secret is looked at twice a minute.
func TestCertificateRotation(t *testing.T) {
	t.Parallel()
	s := guard(t, "rotation", gateway.Configuration{})
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	load := s.gather(t, signed.Name, bare.Name)
	load.more(t)

	secret := s.secret(t)
	before, err := served(t.Context(), s.gateway, secret.Data[certificate.EntryBundle])
	must(t, err)
	old := aged(t, secret)
	_, err = s.client.CoreV1().Secrets(releaseNamespace).Update(t.Context(), secret, meta.UpdateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		now, err := served(ctx, s.gateway, secret.Data[certificate.EntryBundle])
		if err == nil && (bytes.Equal(now, before) || bytes.Equal(now, old)) {
			err = errNotYet
		}
		return err
	})
	load.more(t)

	known := s.bundle(t)
	must(t, s.client.CoreV1().Secrets(releaseNamespace).Delete(t.Context(), certificateSecret, meta.DeleteOptions{}))
	eventually(t, func(context.Context) error {
		if now := s.bundle(t); bytes.Equal(now, known) || !bytes.HasSuffix(now, known) {
			return errNotYet
		}
		return nil
	})
	if !bytes.Equal(s.bundle(t), s.secret(t).Data[certificate.EntryBundle]) {
		t.Error("the webhooks have other authorities than the Secret")
	}
	load.more(t)
	load.leave()
	load.check(t, 0)
}

// bundle is the CA bundle of the webhooks.
func (s *scene) bundle(t *testing.T) []byte {
	t.Helper()
	kept, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), ownName, meta.GetOptions{})
	must(t, err)
	if len(kept.Webhooks) == 0 {
		return nil
	}
	return kept.Webhooks[0].ClientConfig.CABundle
}

// aged puts a leaf near its expiry into the Secret, signed by the authority in it, and
// returns it, DER encoded.
func aged(t *testing.T, secret *core.Secret) []byte {
	t.Helper()
	return leafUntil(t, secret, time.Now().Add(10*24*time.Hour))
}

// leafUntil is aged, with an end of its own; a leaf is good for 90 days.
func leafUntil(t *testing.T, secret *core.Secret, end time.Time) []byte {
	t.Helper()
	authority, key := parsePair(t, secret.Data[certificate.EntryBundle], secret.Data[certificate.EntryAuthority])
	leaf, _ := parsePair(t, secret.Data[certificate.EntryCertificate], secret.Data[certificate.EntryKey])
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: leaf.Subject, DNSNames: leaf.DNSNames, IPAddresses: leaf.IPAddresses,
		NotBefore: end.Add(-90 * 24 * time.Hour), NotAfter: end,
		KeyUsage: leaf.KeyUsage, ExtKeyUsage: leaf.ExtKeyUsage, BasicConstraintsValid: true,
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, template, authority, own.Public(), key)
	must(t, err)
	encoded, err := x509.MarshalPKCS8PrivateKey(own)
	must(t, err)
	secret.Data[certificate.EntryCertificate] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret.Data[certificate.EntryKey] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	return der
}

func parsePair(t *testing.T, certificate, key []byte) (*x509.Certificate, any) {
	t.Helper()
	block, _ := pem.Decode(certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	block, _ = pem.Decode(key)
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	must(t, err)
	return parsed, private
}

// TestCertificateFiles: an external certificate is reloaded when its files change, without a
// restart. It runs in parallel, without a cluster, since the files are read twice a minute.
func TestCertificateFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for half a minute")
	}
	t.Parallel()
	binary, err := shared.binary()
	must(t, err)
	folder := t.TempDir()
	authority, err := controlplane.NewAuthority("another issuer")
	must(t, err)
	c := gateway.Configuration{Standalone: true}
	c.Certificate = gateway.Certificate{
		CertificateFile: filepath.Join(folder, "tls.crt"), KeyFile: filepath.Join(folder, "tls.key"), CAFile: filepath.Join(folder, "ca.crt"),
	}
	must(t, os.Mkdir(filepath.Join(folder, "policies"), 0o700))
	c.Policies.Folders = []string{filepath.Join(folder, "policies")}
	replace := func() {
		pair, err := authority.Server()
		must(t, err, os.WriteFile(c.Certificate.CAFile, authority.PEM(), 0o600),
			os.WriteFile(c.Certificate.KeyFile, pair.Key, 0o600), os.WriteFile(c.Certificate.CertificateFile, pair.Certificate, 0o600))
	}
	replace()
	g, err := gateway.Start(t.Context(), gateway.Options{Program: binary, Folder: folder, Configuration: c})
	must(t, err)
	t.Cleanup(g.Kill)
	must(t, g.Ready(t.Context()))
	first, err := served(t.Context(), g, authority.PEM())
	must(t, err)
	pid := g.Pid()

	replace()
	eventually(t, func(ctx context.Context) error {
		now, err := served(ctx, g, authority.PEM())
		if err == nil && bytes.Equal(now, first) {
			err = fmt.Errorf("the first certificate is served still: %w", errNotYet)
		}
		return err
	})
	if g.Pid() != pid || alive(t.Context(), g) != nil {
		t.Error("it is another process, or none")
	}
}
