package trust_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/digitorus/timestamp"
	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// stamper issues a certificate that may stamp, or another one as it is changed.
func stamper(t *testing.T, name string, parent *issuer, change func(*x509.Certificate)) *issuer {
	t.Helper()
	key := verifytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	usage := verifytest.Must(asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: usage}},
	}
	if change != nil {
		change(template)
	}
	by, byKey := template, key
	if parent != nil {
		by, byKey = parent.certificate, parent.key
	}
	der := verifytest.Must(x509.CreateCertificate(rand.Reader, template, by, key.Public(), byKey))
	return &issuer{certificate: verifytest.Must(x509.ParseCertificate(der)), key: key}
}

// between is an authority between a root and the signer of timestamps.
func between(change func(*x509.Certificate)) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage, c.ExtraExtensions = true, true, x509.KeyUsageCertSign, nil
		if change != nil {
			change(c)
		}
	}
}

// stamped is a timestamp of a signature that brings certificates; none brings not even
// the signer's.
func stamped(t *testing.T, signature []byte, by *issuer, beside ...*issuer) []byte {
	t.Helper()
	sum := sha256.Sum256(signature)
	made := timestamp.Timestamp{
		HashAlgorithm: crypto.SHA256, HashedMessage: sum[:], Time: time.Now().Add(-time.Minute), Policy: asn1.ObjectIdentifier{1, 2, 3},
		AddTSACertificate: len(beside) > 0,
	}
	response := verifytest.Must(made.CreateResponseWithOpts(by.certificate, by.key, crypto.SHA256))
	for _, c := range beside {
		if c != by { // which stands there
			response = verifytest.Must(verifytest.WithCertificate(response, c.certificate))
		}
	}
	return response
}

// TestStampAuthority: what a timestamp brings helps to lead to the authority, and is not
// computed with unless the authority has certified it.
func TestStampAuthority(t *testing.T) {
	anchor := stamper(t, "root", nil, between(nil))
	tsa := stamper(t, "tsa", anchor, between(nil))
	good, second := stamper(t, "stamps", tsa, nil), stamper(t, "stamps", tsa, nil)
	before := stamper(t, "before", nil, between(nil))
	stranger := stamper(t, "root", nil, between(nil)) // of the same name
	strangers := stamper(t, "tsa", stranger, between(nil))
	foreign := stamper(t, "stamps", strangers, nil)
	ended := stamper(t, "ended", anchor, between(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-30 * time.Minute) }))
	since := stamper(t, "since", anchor, between(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-30 * time.Second) }))
	software := stamper(t, "software", anchor, between(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }))
	unfit := stamper(t, "release", tsa, func(c *x509.Certificate) {
		c.ExtraExtensions, c.ExtKeyUsage = nil, []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}
	})
	crossed := &issuer{certificate: verifytest.Must(x509.ParseCertificate(verifytest.Must(x509.CreateCertificate(
		rand.Reader, anchor.certificate, before.certificate, anchor.key.Public(), before.key))))}
	signature := []byte("signature")
	sibling := second
	for len(sibling.certificate.Raw) != len(good.certificate.Raw) { // to stand in its place
		sibling = stamper(t, "stamps", tsa, nil)
	}
	by := func(signer *issuer, beside ...*issuer) []byte {
		return stamped(t, signature, signer, append(beside, signer)...)
	}
	const (
		uncertified   = "is not certified by the authority"
		anotherSigner = "another certificate than the authority's"
		chain         = "the chain of the timestamp's signer"
	)
	for _, c := range []struct {
		reason string
		given  []byte
		stamp  []byte
		says   string // empty: it holds
	}{
		{"the root, and a chain of three", pemOf(anchor), by(good, tsa, anchor), ""},
		{"the root, and a chain without it", pemOf(anchor), by(good, tsa), ""},
		{"the root, and it is certified by the one before", pemOf(anchor), by(good, tsa, crossed), ""},
		{"and by both", pemOf(anchor), by(good, tsa, anchor, crossed, before), ""},
		{"the intermediate is given", pemOf(tsa, anchor), by(good), ""},
		{"the intermediate alone is given", pemOf(tsa), by(good), ""},
		{"the signer is given", pemOf(good, tsa, anchor), by(good, tsa, anchor), ""},
		{"the signer is given, the intermediate is brought", pemOf(good, anchor), by(good, tsa), ""},
		{"the signer is given, and nothing is brought", pemOf(good, tsa, anchor), stamped(t, signature, good), ""},
		{"an intermediate that has ended since", pemOf(anchor), by(stamper(t, "stamps", since, nil), since), ""},
		{"next to foreign certificates", pemOf(anchor), by(good, tsa, strangers, stranger, before), ""},

		{"a chain that lacks one", pemOf(anchor), by(good), uncertified},
		{"nothing is brought", pemOf(anchor), stamped(t, signature, good), "leaf certificate must be present"},
		{"another certificate than its signer's is brought", pemOf(anchor), bytes.Replace(by(good, tsa), good.certificate.Raw, sibling.certificate.Raw, 1), "does not bring the certificate of its signer"},
		{"a foreign chain of the same names", pemOf(anchor), by(foreign, strangers, stranger), uncertified},
		{"beside the authority's", pemOf(anchor), by(foreign, strangers, stranger, tsa, anchor), uncertified},
		{"another signer than the given one", pemOf(good, tsa, anchor), by(second, tsa, anchor), anotherSigner},
		{"a foreign signer in place of the given one", pemOf(good, tsa, anchor), by(foreign, strangers, stranger), anotherSigner},
		{"an intermediate that had ended", pemOf(anchor), by(stamper(t, "stamps", ended, nil), ended), chain},
		{"an intermediate for software", pemOf(anchor), by(stamper(t, "stamps", software, nil), software), chain},
		{"the same is given", pemOf(software, anchor), by(stamper(t, "stamps", software, nil)), chain},
		{"a signer of software", pemOf(anchor), by(unfit, tsa), "incompatible key usage"},
		{"an authority that stamps itself", pemOf(anchor), by(tsa), "end-entity"},
		{"another signature", pemOf(anchor), stamped(t, []byte("another"), good, good, tsa), "hashed messages don't match"},
		{"many that have issued one another", pemOf(anchor), by(good, tsa, anchor, stranger, stamper(t, "root", nil, between(nil)), stamper(t, "root", nil, between(nil))), "have issued one another"},
		{"no timestamp", pemOf(anchor), []byte("junk"), "error parsing response"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			proved, err := stampAuthority(t, trust.Options{}, c.given).Verify(c.stamp, signature)
			switch {
			case c.says == "" && (err != nil || proved.Time.IsZero()):
				t.Errorf("refused: %v", err)
			case c.says != "" && err == nil:
				t.Errorf("it holds, want %q", c.says)
			case c.says != "" && !strings.Contains(err.Error(), c.says):
				t.Errorf("got %q, want %q in it", err, c.says)
			}
		})
	}
	own := verifytest.Must(verifytest.New(verifytest.Options{}))
	_, err := stampAuthority(t, trust.Options{TrustedRoot: own.TrustedRoot()}, nil).Verify(by(good, tsa, anchor), signature)
	if err == nil || !strings.Contains(err.Error(), anotherSigner) {
		t.Errorf("the trusted root's authority returned %v, want %q in it", err, anotherSigner)
	}
	_, err = stampAuthority(t, trust.Options{TrustedRoot: rootless(t, own.TrustedRoot())}, nil).Verify(by(good, tsa, anchor), signature)
	if err == nil || !strings.Contains(err.Error(), "root certificate is nil") {
		t.Errorf("an authority of which the trusted root has the signer alone returned %v", err)
	}
}

// rootless leaves of each timestamp authority the signer alone.
func rootless(t *testing.T, trusted []byte) []byte {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(trusted, &all); err != nil {
		t.Fatal(err)
	}
	for _, authority := range all["timestampAuthorities"].([]any) {
		chain := authority.(map[string]any)["certChain"].(map[string]any)
		chain["certificates"] = chain["certificates"].([]any)[:1]
	}
	return verifytest.Must(json.Marshal(all))
}

// stampAuthority is the authority of a chain, or of the trusted root where none is given.
func stampAuthority(t *testing.T, o trust.Options, chain []byte) root.TimestampingAuthority {
	t.Helper()
	material, err := verifytest.Must(trust.New(o)).Snapshot().Material(verify.Authority{
		Name: "stamped", Key: &verify.Key{PEM: verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})).PublicPEM()},
		Log: verify.Log{Ignore: true}, Timestamp: verify.Timestamp{Required: true, Chain: chain},
	})
	if err != nil {
		t.Fatal(err)
	}
	return material.TimestampingAuthorities()[0]
}
