package webhook

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// authority signs certificates for tests.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string) authority {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a := authority{}
	a.certificate, a.key = sign(t, template, authority{})
	return a
}

func (a authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// leaf signs a certificate for a common name and an extended key usage.
func (a authority) leaf(t testing.TB, name string, usage x509.ExtKeyUsage) *tls.Certificate {
	t.Helper()
	certificate, key := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{usage}, KeyUsage: x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a)
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func sign(t testing.TB, template *x509.Certificate, by authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if by.key == nil {
		by = authority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.certificate, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// fixed serves one certificate.
type fixed struct{ certificate *tls.Certificate }

func (f fixed) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if f.certificate == nil {
		return nil, errors.New("not loaded")
	}
	return f.certificate, nil
}

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// counter observes.
type counter struct {
	mu       sync.Mutex
	statuses map[string][]int
	panics   map[string]int
}

func (c *counter) Enter(r *http.Request, endpoint string) (context.Context, func(int)) {
	return r.Context(), func(status int) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.statuses == nil {
			c.statuses = map[string][]int{}
		}
		c.statuses[endpoint] = append(c.statuses[endpoint], status)
	}
}

func (c *counter) Panicked(endpoint string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.panics == nil {
		c.panics = map[string]int{}
	}
	c.panics[endpoint]++
}

// fixture is a running server.
type fixture struct {
	server   *Server
	ca       authority
	log      *journal
	stop     context.CancelFunc
	returned chan error
}

// start runs a server with the endpoints; change may alter it before it listens.
func start(t *testing.T, endpoints map[string]Endpoint, change func(*Server), with ...Option) *fixture {
	t.Helper()
	f := &fixture{ca: newAuthority(t, "server authority"), log: &journal{}, returned: make(chan error, 1)}
	server, err := New(Config{
		Address: "127.0.0.1:0", Plain: "127.0.0.1:0", Endpoints: endpoints,
		Certificates: fixed{f.ca.leaf(t, "gateway", x509.ExtKeyUsageServerAuth)},
		Metrics:      http.NotFoundHandler(), Log: slog.New(slog.NewJSONHandler(f.log, nil)),
	}, append([]Option{WithDrainDelay(0)}, with...)...)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(server)
	}
	if err := server.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f.server, f.stop = server, stop
	go func() { f.returned <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err, open := <-f.returned; open && err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return f
}

// wait stops the server and returns the result of Run.
func (f *fixture) wait() error {
	f.stop()
	err := <-f.returned
	close(f.returned)
	return err
}

// client trusts the server's authority; change may alter how it connects.
func (f *fixture) client(t *testing.T, http2 bool, change func(*tls.Config)) *http.Client {
	t.Helper()
	c := &tls.Config{RootCAs: f.ca.pool(), MinVersion: tls.VersionTLS12}
	if change != nil {
		change(c)
	}
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: http2, MaxIdleConnsPerHost: 32}
	if !http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (f *fixture) url(path string) string { return "https://" + f.server.Address().String() + path }

// reply is the head of an answer.
type reply struct {
	StatusCode, ProtoMajor int
	Version                uint16 // of TLS
}

func get(t *testing.T, client *http.Client, url string) (*reply, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = response.Body.Close() }()
	head := &reply{StatusCode: response.StatusCode, ProtoMajor: response.ProtoMajor}
	if response.TLS != nil {
		head.Version = response.TLS.Version
	}
	body, err := io.ReadAll(response.Body)
	return head, string(body), err
}

func saying(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, text) })
}
