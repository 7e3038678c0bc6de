// Package notary answers: how do the notation and oras commands sign? It
// signs with notation-go and attaches with oras-go.
package notary

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/notaryproject/notation-go"
	notationregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
)

// The media types of envelopes.
const (
	JWS  = "application/jose+json"
	COSE = "application/cose"
)

// Notary signs under a certificate authority of its own.
type Notary struct {
	signer notation.Signer
	// Root is the authority's certificate: PEM.
	Root []byte
}

// New makes a notary with certificates that are valid for a day.
func New(t testing.TB, name string) *Notary {
	t.Helper()
	now := time.Now()
	subject := func(cn string) pkix.Name {
		return pkix.Name{Country: []string{"XX"}, Province: []string{"None"}, Organization: []string{"Quay"}, CommonName: cn}
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: subject(name + " root"), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: subject(name), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	issue := func(template, parent *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, public, rootKey)
		check(t, err)
		c, err := x509.ParseCertificate(der)
		check(t, err)
		return c
	}
	root = issue(root, root, &rootKey.PublicKey)
	leaf = issue(leaf, root, &key.PublicKey)
	generic, err := signer.NewGenericSigner(key, []*x509.Certificate{leaf, root})
	check(t, err)
	return &Notary{signer: generic, Root: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})}
}

// Sign signs what a repository has under a digest, and pushes the envelope of a
// media type.
func (n *Notary) Sign(ctx context.Context, in *remote.Repository, digest, mediaType string) error {
	artifact := in.Reference.Registry + "/" + in.Reference.Repository + "@" + digest
	if _, err := notation.Sign(ctx, n.signer, notationregistry.NewRepository(in), notation.SignOptions{
		SignerSignOptions: notation.SignerSignOptions{SignatureMediaType: mediaType},
		ArtifactReference: artifact,
	}); err != nil {
		return fmt.Errorf("sign %s: %w", artifact, err)
	}
	return nil
}

// Attach pushes a JSON document as an artifact of a type that refers to an image,
// and returns the artifact's digest.
func Attach(ctx context.Context, in *remote.Repository, image, artifactType string, document []byte) (digest string, err error) {
	subject, err := in.Resolve(ctx, image)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", image, err)
	}
	layer, err := oras.PushBytes(ctx, in, "application/json", document)
	if err != nil {
		return "", fmt.Errorf("push a document of %s: %w", image, err)
	}
	packed, err := oras.PackManifest(ctx, in, oras.PackManifestVersion1_1, artifactType, oras.PackManifestOptions{Subject: &subject, Layers: listOf(layer)})
	if err != nil {
		return "", fmt.Errorf("attach a document to %s: %w", image, err)
	}
	return packed.Digest.String(), nil
}

func listOf[T any](values ...T) []T { return values }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
