// Package leaf tests gateways with an expired certificate.
package leaf

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// The gateway's Secret, and how long a leaf lives.
const (
	ownNamespace, ownSecret = "quaymaster", "quaymaster-certificate"
	leafLife                = 90 * 24 * time.Hour
)

// lookTimeout bounds how long gateways may take to see that their Secret was changed: they
// watch it, and look twice a minute besides.
const lookTimeout = 45 * time.Second

// Expire puts a leaf into the gateways' Secret that ended a minute ago, and returns when the
// gateways at these addresses show another one than before, which holds.
func Expire(ctx context.Context, client kubernetes.Interface, gateways ...string) error {
	secrets := client.CoreV1().Secrets(ownNamespace)
	secret, err := secrets.Get(ctx, ownSecret, meta.GetOptions{})
	if err != nil {
		return err
	}
	authorities := secret.Data[certificate.EntryBundle]
	before := make([]*x509.Certificate, len(gateways))
	for i, address := range gateways {
		before[i], err = shown(ctx, address, authorities)
		if err != nil {
			return err
		}
	}
	if err := end(secret); err != nil {
		return fmt.Errorf("make a certificate that has ended: %w", err)
	}
	if _, err := secrets.Update(ctx, secret, meta.UpdateOptions{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	for i, address := range gateways {
		if err := process.Eventually(ctx, func(ctx context.Context) error {
			now, err := shown(ctx, address, authorities)
			switch {
			case err != nil:
				return err
			case now.Equal(before[i]):
				return errors.New("it shows the certificate of before")
			case time.Now().After(now.NotAfter):
				return errors.New("it shows a certificate that has ended")
			}
			return nil
		}); err != nil {
			return fmt.Errorf("gateway %d: %w", i, err)
		}
	}
	return nil
}

// shown returns the certificate that a gateway presents to a client that trusts the
// authorities.
func shown(ctx context.Context, address string, authorities []byte) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	return connection.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// end replaces the leaf in the Secret by one that has ended, of the same authority.
func end(secret *core.Secret) error {
	authority, key, err := parsePair(secret.Data[certificate.EntryBundle], secret.Data[certificate.EntryAuthority])
	if err != nil {
		return err
	}
	leaf, _, err := parsePair(secret.Data[certificate.EntryCertificate], secret.Data[certificate.EntryKey])
	if err != nil {
		return err
	}
	last := time.Now().Add(-time.Minute)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: leaf.Subject, DNSNames: leaf.DNSNames, IPAddresses: leaf.IPAddresses,
		NotBefore: last.Add(-leafLife), NotAfter: last, KeyUsage: leaf.KeyUsage, ExtKeyUsage: leaf.ExtKeyUsage, BasicConstraintsValid: true,
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, own.Public(), key)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return err
	}
	secret.Data[certificate.EntryCertificate] = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret.Data[certificate.EntryKey] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
	return nil
}

func parsePair(leaf, key []byte) (*x509.Certificate, any, error) {
	first, _ := pem.Decode(leaf)
	second, _ := pem.Decode(key)
	if first == nil || second == nil {
		return nil, nil, errors.New("the Secret has no certificate or no key")
	}
	parsed, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.ParsePKCS8PrivateKey(second.Bytes)
	return parsed, private, err
}
