package trust_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func encode(t testing.TB, kind string, der []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func publicPEM(t testing.TB, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	return encode(t, "PUBLIC KEY", der, err)
}

func ecdsaKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestParsePublicKey(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0") // to make the key that is too short
	p256 := ecdsaKey(t, elliptic.P256())
	good := publicPEM(t, p256.Public())
	edPublic, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	private, privateErr := x509.MarshalPKCS8PrivateKey(p256)
	tests := []struct {
		reason string
		text   []byte
		hash   string
		want   string // part of the refusal; empty means accepted
	}{
		{"P-256", good, "", ""},
		{"P-384", publicPEM(t, ecdsaKey(t, elliptic.P384()).Public()), "", ""},
		{"P-521", publicPEM(t, ecdsaKey(t, elliptic.P521()).Public()), "", ""},
		{"P-224", publicPEM(t, ecdsaKey(t, elliptic.P224()).Public()), "", "P-224"},
		{"RSA of 2048 bits", publicPEM(t, long.Public()), "", ""},
		{"RSA of 1024 bits", publicPEM(t, short.Public()), "", "too short"},
		{"RSA of 8192 bits", publicPEM(t, verifytest.LongKey(8192)), "", ""},
		{"RSA of one bit more", publicPEM(t, verifytest.LongKey(8193)), "", "public key: the RSA key of 8193 bits is longer than the bound of 8192"},
		{"Ed25519", publicPEM(t, edPublic), "", ""},
		{"sha224", good, "sha224", ""},
		{"sha512", good, "sha512", ""},
		{"sha1", good, "sha1", "sha1"},
		{"nothing", nil, "", "no PEM block"},
		{"text", []byte("key"), "", "no PEM block"},
		{"two keys", append(bytes.Clone(good), good...), "", "one authority for each key"},
		{"a key and text", append(bytes.Clone(good), "more"...), "", "after the PEM block"},
		{"a certificate", encode(t, "CERTIFICATE", []byte{0}, nil), "", "certificate"},
		{"PKCS #1", encode(t, "RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&long.PublicKey), nil), "", ""},
		{"no key in the form of PKCS #1", encode(t, "RSA PUBLIC KEY", []byte{1, 2}, nil), "", "PKCS #1"},
		{"a private key", encode(t, "PRIVATE KEY", private, privateErr), "", `want "PUBLIC KEY"`},
		{"broken bytes", encode(t, "PUBLIC KEY", []byte{1, 2}, nil), "", "public key:"},
		{"past the bound", bytes.Repeat([]byte("a"), trust.MaxPEM+1), "", "bound"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			key, err := trust.ParsePublicKey(test.text, test.hash)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want == "" && len(key.Fingerprint) != 64:
				t.Errorf("fingerprint %q", key.Fingerprint)
			case test.want != "" && err == nil:
				t.Error("accepted")
			case test.want != "" && !strings.Contains(err.Error(), test.want):
				t.Errorf("refused as %q, want it to say %q", err, test.want)
			}
		})
	}
}

// TestVerifySignature: a key on P-384 accepts the digest of its curve and
// sha256, and nothing else.
func TestVerifySignature(t *testing.T) {
	private := ecdsaKey(t, elliptic.P384())
	key, err := trust.NewPublicKey(private.Public(), "")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("message"))
	sig, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	if err := key.VerifySignature(bytes.NewReader(sig), strings.NewReader("message")); err != nil {
		t.Errorf("refused: %v", err)
	}
	if err := key.VerifySignature(bytes.NewReader(sig), strings.NewReader("other")); err == nil {
		t.Error("accepted over another message")
	}
	strict, err := trust.NewPublicKey(private.Public(), "sha384")
	if err != nil {
		t.Fatal(err)
	}
	if err := strict.VerifySignature(bytes.NewReader(sig), strings.NewReader("message")); err == nil {
		t.Error("accepted with another digest algorithm than the named one")
	}
}

func FuzzParsePublicKey(f *testing.F) {
	f.Add(publicPEM(f, ecdsaKey(f, elliptic.P256()).Public()))
	f.Fuzz(func(t *testing.T, text []byte) {
		if key, err := trust.ParsePublicKey(text, ""); err == nil && key.Fingerprint == "" {
			t.Error("a key without fingerprint")
		}
		_, _ = trust.ParseCertificates(text, trust.MaxChain)
	})
}
