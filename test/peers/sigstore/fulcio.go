package sigstore

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/peers"
)

// Fulcio is the real certificate authority, with an intermediate key in a file.
type Fulcio struct {
	URL string
	// Chain is its certificates, the root last.
	Chain []*x509.Certificate
}

// StartFulcio runs fulcio with a configuration (YAML: its issuers) until the
// test ends. Without a log its certificates carry no timestamp of one.
func StartFulcio(t testing.TB, config string, log *CTLog) *Fulcio {
	t.Helper()
	folder := t.TempDir()
	cert, key := newAuthority(t, folder)
	ports := freePorts(t, 3)
	args := []string{
		"serve", "--ca=fileca", "--fileca-cert=" + cert, "--fileca-key=" + key, "--fileca-key-passwd=unused", "--fileca-watch=false",
		"--host=127.0.0.1", "--port=" + ports[0],
		"--grpc-host=127.0.0.1", "--grpc-port=" + ports[1], "--metrics-port=" + ports[2],
		"--legacy-unix-domain-socket=" + filepath.Join(folder, "socket"),
		"--config-path=" + write(t, folder, "config.yaml", []byte(config)),
	}
	if log == nil {
		args = append(args, "--ct-log-url=")
	} else {
		args = append(args, "--ct-log-url="+log.URL, "--ct-log-public-key-path="+write(t, folder, "ct.pub", log.PublicPEM()))
	}
	f := &Fulcio{URL: "http://127.0.0.1:" + ports[0]}
	start(t, peers.Fulcio, f.URL+"/api/v2/configuration", args...)
	var trust struct {
		Chains []struct{ Certificates []string }
	}
	check(t, json.Unmarshal(ask(t, http.MethodGet, f.URL+"/api/v2/trustBundle", "application/json", nil), &trust))
	if len(trust.Chains) != 1 {
		t.Fatalf("fulcio has %d chains, want 1", len(trust.Chains))
	}
	f.Chain = certificates(t, trust.Chains[0].Certificates...)
	if len(f.Chain) != 2 {
		t.Fatalf("fulcio's chain has %d certificates, want an intermediate and a root", len(f.Chain))
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

func write(t testing.TB, folder, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	check(t, os.WriteFile(path, content, 0o600))
	return path
}
