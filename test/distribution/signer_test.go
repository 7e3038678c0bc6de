package distribution

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/notaryproject/notation-go"
	notationregistry "github.com/notaryproject/notation-go/registry"
	"github.com/notaryproject/notation-go/signer"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

// notary signs as the notation command does: with notation-go, over oras-go.
type notary struct {
	signer notation.Signer
	root   []byte // PEM
}

func newNotary(t *testing.T, name string) *notary {
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
	return &notary{signer: generic, root: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})}
}

// sign signs an image by digest and pushes the envelope of a media type.
func (n *notary) sign(t *testing.T, host, image, mediaType string) {
	t.Helper()
	repository, err := remote.NewRepository(image)
	check(t, err)
	repository.PlainHTTP = true
	repository.Client = &auth.Client{
		Credential: auth.StaticCredential(host, auth.Credential{Username: user, Password: password}),
		Cache:      auth.NewCache(),
	}
	_, err = notation.Sign(t.Context(), n.signer, notationregistry.NewRepository(repository), notation.SignOptions{
		SignerSignOptions: notation.SignerSignOptions{SignatureMediaType: mediaType},
		ArtifactReference: image,
	})
	check(t, err)
}
