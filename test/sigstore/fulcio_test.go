package sigstore_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/peers"
)

// fulcio is the real certificate authority, with an intermediate key in a file.
type fulcio struct {
	url string
	// chain is its certificates, the root last.
	chain []*x509.Certificate
}

// fulcioConfig trusts the issuers: %[1]s is their address.
const fulcioConfig = `oidc-issuers:
  %[1]s/people: {issuer-url: "%[1]s/people", client-id: sigstore, type: email}
  %[1]s/strangers: {issuer-url: "%[1]s/strangers", client-id: sigstore, type: email}
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

// startFulcio runs fulcio; without a log its certificates carry no timestamp of
// one.
func startFulcio(t testing.TB, issuers *issuers, log *ctLog) *fulcio {
	t.Helper()
	folder := t.TempDir()
	cert, key := newAuthority(t, folder)
	ports := freePorts(t, 3)
	args := []string{
		"serve", "--ca=fileca", "--fileca-cert=" + cert, "--fileca-key=" + key, "--fileca-key-passwd=unused", "--fileca-watch=false",
		"--host=127.0.0.1", "--port=" + ports[0],
		"--grpc-host=127.0.0.1", "--grpc-port=" + ports[1], "--metrics-port=" + ports[2],
		"--legacy-unix-domain-socket=" + filepath.Join(folder, "socket"),
		"--config-path=" + write(t, folder, "config.yaml", fmt.Appendf(nil, fulcioConfig, issuers.url)),
	}
	if log == nil {
		args = append(args, "--ct-log-url=")
	} else {
		args = append(args, "--ct-log-url="+log.url, "--ct-log-public-key-path="+write(t, folder, "ct.pub", log.publicPEM()))
	}
	f := &fulcio{url: "http://127.0.0.1:" + ports[0]}
	start(t, peers.Fulcio, f.url+"/api/v2/configuration", args...)
	var trust struct {
		Chains []struct{ Certificates []string }
	}
	check(t, call(t, http.MethodGet, f.url+"/api/v2/trustBundle", nil, &trust))
	if len(trust.Chains) != 1 {
		t.Fatalf("fulcio has %d chains, want 1", len(trust.Chains))
	}
	if f.chain = certificates(t, trust.Chains[0].Certificates...); len(f.chain) != 2 {
		t.Fatalf("fulcio's chain has %d certificates, want an intermediate and a root", len(f.chain))
	}
	return f
}

// newAuthority writes the chain and the key of an intermediate authority.
func newAuthority(t testing.TB, folder string) (cert, key string) {
	t.Helper()
	rootKey, ownKey := newKey(t), newKey(t)
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Root"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "Fulcio"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: root.NotBefore, NotAfter: root.NotAfter, KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	var chain []byte
	for _, one := range []struct {
		template *x509.Certificate
		public   crypto.PublicKey
	}{{own, ownKey.Public()}, {root, rootKey.Public()}} {
		der, err := x509.CreateCertificate(rand.Reader, one.template, root, one.public, rootKey)
		check(t, err)
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ownKey)
	check(t, err)
	return write(t, folder, "chain.pem", chain),
		write(t, folder, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// call speaks JSON.
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

// certify asks fulcio for a certificate of the key, for whomever the token
// speaks of; name is what proves that the key is held.
func (f *fulcio) certify(t testing.TB, key *ecdsa.PrivateKey, token, name string) (*x509.Certificate, error) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	check(t, err)
	type chain struct {
		Chain struct{ Certificates []string }
	}
	var got struct{ SignedCertificateEmbeddedSct, SignedCertificateDetachedSct chain }
	err = call(t, http.MethodPost, f.url+"/api/v2/signingCert", map[string]any{
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
