package sigstore_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/test/peers/sigstore"
)

// fulcioConfig trusts the issuers: %[1]s is their address.
const fulcioConfig = `oidc-issuers:
  %[1]s/people: {issuer-url: "%[1]s/people", client-id: sigstore, type: email}
  %[1]s/others: {issuer-url: "%[1]s/others", client-id: sigstore, type: email}
  %[1]s/workflows: {issuer-url: "%[1]s/workflows", client-id: sigstore, type: ci-provider, ci-provider: forge}
ci-issuer-metadata:
  forge:
    default-template-values: {url: "https://forge.example"}
    extension-templates:
      github-workflow-trigger: event_name
      github-workflow-repository: repository
      build-signer-uri: "{{ .url }}/{{ .workflow_ref }}"
      runner-environment: runner
      source-repository-uri: "{{ .url }}/{{ .repository }}"
    subject-alternative-name-template: "{{ .url }}/{{ .workflow_ref }}"
`

// fulcio is the real certificate authority.
type fulcio struct{ *sigstore.Fulcio }

// startFulcio runs fulcio; without a log its certificates carry no timestamp of
// one.
func startFulcio(t testing.TB, issuers *issuers, log *sigstore.CTLog) *fulcio {
	t.Helper()
	return &fulcio{sigstore.StartFulcio(t, fmt.Sprintf(fulcioConfig, issuers.URL), log)}
}

// call sends and receives JSON.
func call(t testing.TB, method, url string, in, out any) error {
	t.Helper()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		check(t, err)
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	check(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	check(t, err)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, text)
	}
	return json.Unmarshal(text, out)
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

// newKey makes a signer's key.
func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func sign(t testing.TB, key *ecdsa.PrivateKey, message []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(message)
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	check(t, err)
	return signature
}

// certify asks fulcio for a certificate of the key, for the token's
// identity; name is the proof of possession of the key.
func (f *fulcio) certify(t testing.TB, key *ecdsa.PrivateKey, token, name string) (*x509.Certificate, error) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	check(t, err)
	type chain struct {
		Chain struct{ Certificates []string }
	}
	var got struct{ SignedCertificateEmbeddedSct, SignedCertificateDetachedSct chain }
	err = call(t, http.MethodPost, f.URL+"/api/v2/signingCert", map[string]any{
		"credentials": map[string]string{"oidcIdentityToken": token},
		"publicKeyRequest": map[string]any{
			"publicKey": map[string]string{
				"algorithm": "ECDSA", "content": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
			},
			"proofOfPossession": sign(t, key, []byte(name)),
		},
	}, &got)
	if err != nil {
		return nil, err
	}
	all := certificates(t, append(got.SignedCertificateEmbeddedSct.Chain.Certificates, got.SignedCertificateDetachedSct.Chain.Certificates...)...)
	if len(all) == 0 {
		return nil, fmt.Errorf("fulcio answered without a certificate")
	}
	return all[0], nil
}

func write(t testing.TB, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	check(t, os.WriteFile(path, content, 0o600))
	return path
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
