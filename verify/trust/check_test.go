package trust_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func blockOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func keyPEM(key crypto.PublicKey) string {
	return blockOf("PUBLIC KEY", verifytest.Must(x509.MarshalPKIXPublicKey(key)))
}

// TestCheckKeys: accepted material verifies, and refused material never does: material of the
// same key is refused, too.
func TestCheckKeys(t *testing.T) {
	good := map[string]string{}
	for _, algorithm := range []verifytest.Algorithm{verifytest.ECDSAP256, verifytest.ECDSAP384, verifytest.ECDSAP521, verifytest.RSA2048, verifytest.RSA3072, verifytest.RSA4096, verifytest.Ed25519} {
		good[string(algorithm)] = string(verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{Algorithm: algorithm})).PublicPEM())
	}
	good["RSA 8192"] = keyPEM(verifytest.LongKey(8192))
	store := verifytest.Must(trust.New(trust.Options{}))
	material := func(text string) error {
		_, err := store.Snapshot().Material(verify.Authority{Name: "a", Key: &verify.Key{PEM: []byte(text)}, Log: verify.Log{Ignore: true}})
		return err
	}
	for name, text := range good {
		for _, hash := range []string{"", "sha224", "sha256", "sha384", "sha512"} {
			good := hash != "sha224" || !strings.HasPrefix(strings.ToLower(name), "rsa") // no RSA signature is verified with it
			if err := trust.CheckKeys([]byte(text), hash); (err == nil) != good {
				t.Errorf("%s with %q: %v, want %t", name, hash, err, good)
			}
		}
		if err := trust.CheckKeys([]byte(text), "md5"); err == nil {
			t.Errorf("%s with md5 passed", name)
		}
		if err := material(text); err != nil {
			t.Errorf("%s, as material: %v", name, err)
		}
	}
	one := good[string(verifytest.ECDSAP256)]
	for name, text := range verifytest.Must(verifytest.UnusableKeys()) {
		if err := trust.CheckKeys([]byte(text), ""); err == nil {
			t.Errorf("%s passed", name)
		}
		if err := material(text); err == nil {
			t.Errorf("%s passed as material", name)
		}
		if strings.Contains(text, "-----BEGIN") {
			if err := trust.CheckKeys([]byte(one+text), ""); err == nil || !strings.Contains(err.Error(), "PEM block 2 of 2: ") {
				t.Errorf("%s after a good key: %v", name, err)
			}
			if err := trust.CheckKeys([]byte(text+one), ""); err == nil || !strings.Contains(err.Error(), "PEM block 1 of 2: ") {
				t.Errorf("%s before a good key: %v", name, err)
			}
		}
	}
}

// certified is a self-signed certificate authority's certificate of a key, which another
// key signs.
func certified(t *testing.T, key crypto.PublicKey) string {
	t.Helper()
	signer := verifytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	return blockOf("CERTIFICATE", verifytest.Must(x509.CreateCertificate(rand.Reader, template, template, key, signer)))
}

func TestCheckCertificates(t *testing.T) {
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	leaf := string(verifytest.Must(s.Keyless(verifytest.Identity{Email: "dev@example.org", Issuer: "https://token.example"})).CertificatePEM())
	p224 := certified(t, verifytest.Must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)).Public())
	short := certified(t, &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 1023, 1), E: 65537})
	edwards, _, _ := ed25519.GenerateKey(rand.Reader)
	der := decoded(certified(t, edwards))
	for i := range der { // 1.3.101.112 is Ed25519, 1.3.101.110 X25519
		if string(der[i:min(i+5, len(der))]) == "\x06\x03\x2b\x65\x70" {
			der[i+4] = 0x6e
		}
	}
	x25519 := blockOf("CERTIFICATE", der)
	junk, empty := blockOf("CERTIFICATE", []byte("junk")), blockOf("CERTIFICATE", nil)
	chain, tsa := string(s.CA.RootPEM()), string(s.TSA.ChainPEM())
	for _, test := range []struct {
		reason, text        string
		leaf, chain, stamps bool // its purposes
	}{
		{"a signer's", leaf, true, true, false},
		{"a root", chain, true, true, true},
		{"a chain of a timestamp authority", tsa, false, true, true},
		{"a signer's on P-224", p224, false, true, true},
		{"a signer's of RSA 1024", short, false, true, true},
		{"of X25519", x25519, false, false, false},
		{"a root, and one of X25519", chain + x25519, false, false, false},
		{"bytes that are none", junk, false, false, false},
		{"a root, and bytes that are none", chain + junk, false, false, false},
		{"an empty block", empty, false, false, false},
		{"a key", keyPEM(edwards), false, false, false},
		{"nothing", "", false, false, false},
	} {
		for _, check := range []struct {
			name string
			of   func([]byte) error
			good bool
		}{{"a signer", trust.CheckCertificate, test.leaf}, {"a chain", trust.CheckChain, test.chain}, {"timestamps", trust.CheckTimestampChain, test.stamps}} {
			if err := check.of([]byte(test.text)); (err == nil) != check.good {
				t.Errorf("%s, for %s: %v, want %t", test.reason, check.name, err, check.good)
			}
		}
	}
}

func decoded(text string) []byte {
	block, _ := pem.Decode([]byte(text))
	return block.Bytes
}
