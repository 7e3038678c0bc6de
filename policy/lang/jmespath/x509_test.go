package jmespath_test

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
)

func certificate(t *testing.T, key crypto.Signer) string {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "*.example"},
		NotBefore: time.Date(2022, 10, 10, 11, 46, 32, 0, time.UTC), NotAfter: time.Date(2023, 10, 10, 12, 46, 32, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestX509Decode(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		key        crypto.Signer
		expression string
		want       any
	}{
		{rsaKey, "x509_decode(@).Subject.CommonName", "*.example"},
		{rsaKey, "x509_decode(@).PublicKey.N", rsaKey.N.String()},
		{rsaKey, "x509_decode(@).PublicKey.E", 65537.0},
		{rsaKey, "x509_decode(@).time_since('', NotBefore, NotAfter)", "8761h0m0s"},
		{ecKey, "x509_decode(@).PublicKey.Curve", "P-256"},
	} {
		got, err := search(t, test.expression, certificate(t, test.key))
		if err != nil || got != test.want {
			t.Errorf("%s = %v, %v; want %v", test.expression, got, err, test.want)
		}
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{"a.example"}}, ecKey)
	if err != nil {
		t.Fatal(err)
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	if got, err := search(t, "x509_decode(@).DNSNames[0]", text); err != nil || got != "a.example" {
		t.Errorf("a request: %v, %v", got, err)
	}
	if got, err := search(t, "x509_decode(@).PublicKey.Curve", text); err != nil || got != "P-256" {
		t.Errorf("the key of a request: %v, %v", got, err)
	}
	for _, kind := range []string{"CERTIFICATE", "CERTIFICATE REQUEST"} {
		broken := string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: request[:len(request)/2]}))
		if got, err := search(t, "x509_decode(@)", broken); err == nil || !strings.Contains(err.Error(), "x509_decode: ") {
			t.Errorf("half of a %s: %v, %v", kind, got, err)
		}
	}
	text = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: request}))
	if got, err := search(t, "x509_decode(@)", text); err == nil {
		t.Errorf("a private key was decoded: %v", got)
	}
}
