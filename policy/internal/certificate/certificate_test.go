package certificate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/internal/certificate"
)

func encoded(tb testing.TB, kind string) string {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "a.example"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestDecode(t *testing.T) {
	object, err := certificate.Decode(encoded(t, "CERTIFICATE"))
	if err != nil {
		t.Fatal(err)
	}
	key, _ := object["PublicKey"].(map[string]any)
	if object["SerialNumber"] != 7.0 || key["Curve"] != "P-256" {
		t.Errorf("%v", object)
	}
	for kind, want := range map[string]string{
		"PRIVATE KEY":            `the PEM block is a "PRIVATE KEY": want CERTIFICATE`,
		"CERTIFICATE REQUEST":    "structure error",
		strings.Repeat("A", 500): `want CERTIFICATE or CERTIFICATE REQUEST`,
	} {
		if _, err := certificate.Decode(encoded(t, kind)); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := certificate.Decode("x"); err == nil {
		t.Error("a text without PEM is decoded")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, "CERTIFICATE"))
	f.Add(encoded(f, "CERTIFICATE REQUEST"))
	f.Fuzz(func(t *testing.T, text string) {
		if object, err := certificate.Decode(text); err == nil && object["SerialNumber"] == nil && object["Version"] == nil {
			t.Errorf("neither a certificate nor a request: %v", object)
		}
	})
}
