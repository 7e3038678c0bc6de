package library_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
)

func certificate(t *testing.T, key crypto.Signer, serial *big.Int) string {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "*.example"}, DNSNames: []string{"a.example"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(2022, 10, 10, 11, 46, 32, 0, time.UTC), NotAfter: time.Date(2023, 10, 10, 12, 46, 32, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestX509 reads the fields that Kyverno's library has.
func TestX509(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, large := certificate(t, rsaKey, big.NewInt(1<<53-1)), certificate(t, ecKey, big.NewInt(1<<53))
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"b.example"}}, rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	requested := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: request}))
	env, err := cel.NewEnv(append(library.Functions(), cel.Variable("text", cel.StringType))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason, expression, text string
		want                     any
		err                      string
	}{
		{"the issuer", "x509.decode(text).Issuer.CommonName", small, "*.example", ""},
		{"a name", "x509.decode(text).DNSNames[0]", small, "a.example", ""},
		{"the end", "timestamp(x509.decode(text).NotAfter) < timestamp('2024-01-01T00:00:00Z')", small, true, ""},
		{"an authority", "x509.decode(text).IsCA && x509.decode(text).BasicConstraintsValid", small, true, ""},
		{"the key", "x509.decode(text).PublicKey.N", small, rsaKey.N.String(), ""},
		{"the algorithm", "x509.decode(text).PublicKeyAlgorithm == 1.0", small, true, ""},
		{"the curve of a key", "x509.decode(text).PublicKey.Curve", large, "P-256", ""},
		{"a serial number", "x509.decode(text).SerialNumber == 9007199254740991.0", small, true, ""},
		{"a serial number that would be rounded", "x509.decode(text).SerialNumber == 9007199254740992.0", large, nil, "more than 53 bits"},
		{"another one, denied", "!(x509.decode(text).SerialNumber == 1.0)", large, nil, "more than 53 bits"},
		{"another field of its certificate", "x509.decode(text).DNSNames[0]", large, "a.example", ""},
		{"a request", "x509.decode(text).DNSNames[0]", requested, "b.example", ""},
		{"a field that there is not", "x509.decode(text).Thumbprint", small, nil, "no such key"},
		{"no PEM", "x509.decode(text)", "x", nil, "no PEM block"},
		{"a private key", "x509.decode(text)", private, nil, "want CERTIFICATE or CERTIFICATE REQUEST"},
		{"a request that is called a certificate", "x509.decode(text)", strings.ReplaceAll(requested, " REQUEST", ""), nil, "x509: "},
		{"a large text", "x509.decode(text)", strings.Repeat("\n", 2<<20) + small, nil, "the document is larger than 2097152 bytes"},
		{"a text that is as large as may be", "x509.decode(text).DNSNames[0]", strings.Repeat("\n", 2<<20-len(small)) + small, "a.example", ""},
	} {
		got, err := evaluate(t, env, c.expression, map[string]any{"text": c.text})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, want %q", c.reason, err, c.err)
		}
		if err == nil && got.Value() != c.want {
			t.Errorf("%s: got %v, want %v", c.reason, got.Value(), c.want)
		}
	}
}
