package trust_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// issuer is a certificate with its key.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a certificate under a parent, or its own root.
func issue(t *testing.T, name string, isCA bool, parent *issuer) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if isCA {
		template.KeyUsage = x509.KeyUsageCertSign
	} else {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
		template.EmailAddresses = []string{name + "@corp.test"}
	}
	signer, signerKey := template, key
	if parent != nil {
		signer, signerKey = parent.certificate, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, key.Public(), signerKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{certificate: certificate, key: key}
}

func pemOf(certificates ...*issuer) []byte {
	var out []byte
	for _, c := range certificates {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.certificate.Raw})...)
	}
	return out
}

// TestForeignIntermediates: a chain that names its intermediate trusts what that
// one issues, and not whatever else its root has signed.
func TestForeignIntermediates(t *testing.T) {
	root := issue(t, "corp root", true, nil)
	signing := issue(t, "code signing", true, root)
	intranet := issue(t, "intranet", true, root)
	release, anybody := issue(t, "release", false, signing), issue(t, "anybody", false, intranet)
	store, err := trust.New(trust.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason    string
		chain     []byte
		leaf, via *issuer
		want      bool
	}{
		{"issued by the named intermediate", pemOf(signing, root), release, signing, true},
		{"issued by another one of the root", pemOf(signing, root), anybody, intranet, false},
		{"a chain of the root alone trusts all of it", pemOf(root), anybody, intranet, true},
	} {
		authority := verify.Authority{
			Name: "chain", Log: verify.Log{Ignore: true},
			Certificate: &verify.Certificate{Chain: c.chain, CT: verify.CT{Ignore: true}},
		}
		material, err := store.Snapshot().Material(authority)
		if err != nil {
			t.Fatal(err)
		}
		proved := false
		for _, ca := range material.WithIntermediates([]*x509.Certificate{c.via.certificate}).FulcioCertificateAuthorities() {
			if _, err := ca.Verify(c.leaf.certificate, time.Now()); err == nil {
				proved = true
			}
		}
		if proved != c.want {
			t.Errorf("%s: proved %t, want %t", c.reason, proved, c.want)
		}
	}
}

// TestUncertifiedIntermediates: an authority is given none that its root has not
// certified, so that no foreign key is computed with.
func TestUncertifiedIntermediates(t *testing.T) {
	anchor := issue(t, "corp root", true, nil)
	signing := issue(t, "code signing", true, anchor)
	below := issue(t, "team", true, signing)
	namesake := issue(t, "corp root", true, nil)
	stranger := issue(t, "code signing", true, namesake)
	leaf := issue(t, "release", false, anchor)
	material, err := verifytest.Must(trust.New(trust.Options{})).Snapshot().Material(verify.Authority{
		Name: "chain", Log: verify.Log{Ignore: true},
		Certificate: &verify.Certificate{Chain: pemOf(anchor), CT: verify.CT{Ignore: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason        string
		carried, want []*issuer
	}{
		{"of the root", []*issuer{signing}, []*issuer{signing}},
		{"below one of the root", []*issuer{signing, below}, []*issuer{signing, below}},
		{"in another order", []*issuer{below, signing}, []*issuer{signing, below}},
		{"its issuer is missing", []*issuer{below}, nil},
		{"of a root of the same name", []*issuer{stranger, namesake}, nil},
		{"beside the root's", []*issuer{stranger, signing, namesake}, []*issuer{signing}},
		{"the root itself", []*issuer{anchor}, []*issuer{anchor}},
		{"what its leaf has issued", []*issuer{leaf, issue(t, "by a leaf", true, leaf)}, []*issuer{leaf}},
	} {
		var carried, want []*x509.Certificate
		for _, i := range c.carried {
			carried = append(carried, i.certificate)
		}
		for _, i := range c.want {
			want = append(want, i.certificate)
		}
		given := slices.Clone(carried)
		authority := material.WithIntermediates(carried).FulcioCertificateAuthorities()[0].(*root.FulcioCertificateAuthority)
		if got := authority.Intermediates; !slices.Equal(got, want) {
			t.Errorf("%s: got %d of %d, want %d", c.reason, len(got), len(carried), len(want))
		}
		if !slices.Equal(carried, given) {
			t.Errorf("%s: it changed its input", c.reason)
		}
	}
}
