package kms_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The real addresses of the services. The providers use them, and
// the product has no other configuration here.
const (
	vaultHost     = "vault.example:8200"
	awsHost       = "kms.eu-central-1.amazonaws.com:443"
	awsOwnHost    = "kms.example:443"
	azureHost     = "quay.vault.azure.net:443"
	azureOwnHost  = "vault.example.org:443"
	entraHost     = "login.microsoftonline.com:443"
	gcpHost       = "cloudkms.googleapis.com:443"
	googleHost    = "oauth2.googleapis.com:443"
	googleAccount = "quaymaster@quay.iam.gserviceaccount.com"
)

// Credentials, none of which may show in a message.
const (
	vaultToken  = "hvs.secret-of-vault"
	awsKeyID    = "AKIDQUAYMASTERTEST"
	awsSecret   = "secret-of-aws"
	azureTenant = "11111111-2222-3333-4444-555555555555"
	azureClient = "66666666-7777-8888-9999-000000000000"
	azureSecret = "secret-of-azure"
	azureToken  = "token-of-azure"
)

// world is the process's internet: a proxy for all connections,
// and a certificate authority that is trusted.
type world struct {
	certificate tls.Certificate // good for every host above
	google      *rsa.PrivateKey // of the service account

	mu     sync.Mutex
	routes map[string]string // host:port to loopback
	open   map[string][]net.Conn
	lost   []string // hosts that were asked for and have no route
}

// earth is set by TestMain, because the process reads its proxy and its trusted
// certificates from the environment once.
var earth *world

func TestMain(m *testing.M) {
	if err := inWorld(m); err != nil {
		panic(err)
	}
}

// inWorld runs the tests. Their result is kept in m.
func inWorld(m *testing.M) error {
	folder, err := os.MkdirTemp("", "kms-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	earth = &world{routes: map[string]string{}, open: map[string][]net.Conn{}}
	roots, account := filepath.Join(folder, "roots.pem"), filepath.Join(folder, "account.json")
	if err := earth.certify(roots); err != nil {
		return err
	}
	if err := earth.enlist(account); err != nil {
		return err
	}
	if err := forget("AWS_", "AZURE_", "BAO_", "GOOGLE_", "GRPC_", "IDENTITY_", "MSI_", "VAULT_"); err != nil {
		return err
	}
	proxy := httptest.NewServer(earth)
	defer proxy.Close()
	for name, value := range map[string]string{
		"HTTPS_PROXY": proxy.URL, "https_proxy": proxy.URL, "NO_PROXY": "", "no_proxy": "",
		"SSL_CERT_FILE": roots, "SSL_CERT_DIR": folder, "HOME": folder,

		"VAULT_ADDR": "https://" + vaultHost, "VAULT_TOKEN": vaultToken,

		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": awsKeyID, "AWS_SECRET_ACCESS_KEY": awsSecret,
		"AWS_MAX_ATTEMPTS": "1", "AWS_EC2_METADATA_DISABLED": "true",

		"AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential", "AZURE_TENANT_ID": azureTenant,
		"AZURE_CLIENT_ID": azureClient, "AZURE_CLIENT_SECRET": azureSecret,

		"GOOGLE_APPLICATION_CREDENTIALS": account,
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	m.Run()
	return nil
}

// forget unsets the variables with these prefixes, so that nothing of this
// machine takes part.
func forget(prefixes ...string) error {
	for _, variable := range os.Environ() {
		for _, prefix := range prefixes {
			if !strings.HasPrefix(variable, prefix) {
				continue
			}
			name, _, _ := strings.Cut(variable, "=")
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// certify makes the certificate authority, and a certificate for every host.
func (w *world) certify(roots string) error {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "World"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "Services"},
		NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range []string{vaultHost, awsHost, awsOwnHost, azureHost, azureOwnHost, entraHost, gcpHost, googleHost} {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			return err
		}
		leaf.DNSNames = append(leaf.DNSNames, name)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), rootKey)
	if err != nil {
		return err
	}
	w.certificate = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: rootDER}), 0o600)
}

// enlist makes a Google service account.
func (w *world) enlist(path string) error {
	var err error
	w.google, err = rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(w.google)
	if err != nil {
		return err
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "quay", "private_key_id": "1", "client_id": "1",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": googleAccount, "token_uri": "https://oauth2.googleapis.com/token",
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, account, 0o600)
}

// route leads a host to an address on loopback until the test ends.
func (w *world) route(t testing.TB, host, address string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.routes[host] = address
	t.Cleanup(func() { w.cut(host) })
}

// cut makes a host unreachable, also by connections that are open already.
func (w *world) cut(host string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.routes, host)
	for _, connection := range w.open[host] {
		_ = connection.Close()
	}
	delete(w.open, host)
}

// asked reports whether a host was asked for that has no route.
func (w *world) asked(host string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.lost, host)
}

// serve runs a handler as a host, with TLS.
func (w *world) serve(t testing.TB, host string, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{w.certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	w.route(t, host, server.Listener.Addr().String())
	return server
}

// ServeHTTP is a proxy that knows only the routes.
func (w *world) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	w.mu.Lock()
	address, ok := w.routes[request.Host]
	if !ok {
		w.lost = append(w.lost, request.Host)
	}
	w.mu.Unlock()
	if !ok || request.Method != http.MethodConnect {
		http.Error(response, "no route to "+request.Host, http.StatusBadGateway)
		return
	}
	var dialer net.Dialer
	there, err := dialer.DialContext(request.Context(), "tcp", address)
	if err != nil {
		http.Error(response, "no answer", http.StatusBadGateway)
		return
	}
	here, buffered, err := response.(http.Hijacker).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	w.mu.Lock()
	w.open[request.Host] = append(w.open[request.Host], here)
	w.mu.Unlock()
	join(here, buffered, there)
}

// join carries bytes both ways until one side is done.
func join(here net.Conn, buffered *bufio.ReadWriter, there net.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Fprint(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	go func() {
		defer cancel()
		_, _ = io.Copy(there, buffered)
	}()
	go func() {
		defer cancel()
		_, _ = io.Copy(here, there)
	}()
	<-ctx.Done()
	_ = here.Close()
	_ = there.Close()
}
