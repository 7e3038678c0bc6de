package verify_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"math/big"
	"testing"

	"github.com/quaymaster/quaymaster/verify"
)

// TestSignatureID: a new signature has another identity, the twin of an ECDSA signature the same.
func TestSignatureID(t *testing.T) {
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	factors, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("statement"))
	sign := func(key crypto.Signer, message []byte, options crypto.SignerOpts) []byte {
		t.Helper()
		signature, err := key.Sign(rand.Reader, message, options)
		if err != nil {
			t.Fatal(err)
		}
		return signature
	}
	first := sign(curve, digest[:], crypto.SHA256)
	var twin struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(first, &twin); err != nil {
		t.Fatal(err)
	}
	twin.S.Sub(curve.Params().N, twin.S)
	second, err := asn1.Marshal(twin)
	if err != nil || !ecdsa.VerifyASN1(&curve.PublicKey, digest[:], second) {
		t.Fatalf("the twin is no signature: %v", err)
	}
	pss := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthAuto, Hash: crypto.SHA256}
	for _, c := range []struct {
		reason string
		a, b   []byte
		same   bool
	}{
		{"one signature", first, first, true},
		{"the twin", first, second, true},
		{"a new signature by ECDSA", first, sign(curve, digest[:], crypto.SHA256), false},
		{"a new one by RSA-PSS", sign(factors, digest[:], pss), sign(factors, digest[:], pss), false},
		{"the same bytes again by Ed25519", sign(edwards, digest[:], crypto.Hash(0)), sign(edwards, digest[:], crypto.Hash(0)), true},
		{"other bytes", sign(edwards, digest[:], crypto.Hash(0)), sign(edwards, digest[1:], crypto.Hash(0)), false},
		{"more bytes after a signature", first, append(append([]byte{}, first...), 0), false},
	} {
		if same := verify.SignatureID(c.a) == verify.SignatureID(c.b); same != c.same {
			t.Errorf("%s: the same: %t", c.reason, same)
		}
	}
}
