// Package sigstore answers: where is the Sigstore that a test signs with?
//
// Fulcio and the timestamp authority are the real programs. The other servers that they
// and cosign need are of our own, on loopback, with no more than the necessary
// requests: OpenID Connect issuers, a certificate transparency log
// (RFC 6962) and a transparency log for signatures (Rekor's API, version 1).
package sigstore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"testing"
	"time"
)

// Roots are what a trusted root names. Each may be nil.
type Roots struct {
	Fulcio *Fulcio
	TSA    *TSA
	CTLog  *CTLog
	Rekor  *Rekor
}

// JSON composes a trusted_root.json (media type version 0.1).
func (r Roots) JSON(t testing.TB) []byte {
	t.Helper()
	root := map[string]any{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}
	if r.Fulcio != nil {
		root["certificateAuthorities"] = authority(r.Fulcio.URL, r.Fulcio.Chain)
	}
	if r.TSA != nil {
		root["timestampAuthorities"] = authority(r.TSA.URL, r.TSA.Chain)
	}
	if r.CTLog != nil {
		root["ctlogs"] = instance(r.CTLog.URL, r.CTLog.key.Public().(*ecdsa.PublicKey))
	}
	if r.Rekor != nil {
		root["tlogs"] = instance(r.Rekor.URL, r.Rekor.key.Public().(*ecdsa.PublicKey))
	}
	text, err := json.Marshal(root)
	check(t, err)
	return text
}

func authority(url string, chain []*x509.Certificate) []any {
	var raw []any
	for _, certificate := range chain {
		raw = append(raw, map[string]any{"rawBytes": certificate.Raw})
	}
	root := chain[len(chain)-1]
	return []any{map[string]any{
		"uri": url, "subject": map[string]string{"organization": "Test", "commonName": root.Subject.CommonName},
		"certChain": map[string]any{"certificates": raw}, "validFor": map[string]any{"start": root.NotBefore.UTC()},
	}}
}

// instance is a log: its ID is the hash of its key.
func instance(url string, key *ecdsa.PublicKey) []any {
	der := publicDER(key)
	id := sha256.Sum256(der)
	return []any{map[string]any{
		"baseUrl": url, "hashAlgorithm": "SHA2_256", "logId": map[string]any{"keyId": id[:]},
		"publicKey": map[string]any{
			"rawBytes": der, "keyDetails": "PKIX_ECDSA_P256_SHA_256",
			"validFor": map[string]any{"start": time.Now().Add(-time.Hour).UTC()},
		},
	}}
}

// publicDER encodes a key of ours.
func publicDER(key *ecdsa.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err) // not of a key on P-256
	}
	return der
}

func publicPEM(key *ecdsa.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER(&key.PublicKey)})
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func sign(key *ecdsa.PrivateKey, message []byte) ([]byte, error) {
	sum := sha256.Sum256(message)
	return key.Sign(rand.Reader, sum[:], crypto.SHA256)
}

// PEM writes certificates one after the other.
func PEM(chain []*x509.Certificate) []byte {
	var text []byte
	for _, certificate := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})...)
	}
	return text
}

func certificates(t testing.TB, texts ...string) []*x509.Certificate {
	t.Helper()
	var all []*x509.Certificate
	for _, text := range texts {
		for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
			certificate, err := x509.ParseCertificate(block.Bytes)
			check(t, err)
			all = append(all, certificate)
		}
	}
	return all
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
