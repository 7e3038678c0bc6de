package registrytest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Server is a Registry that listens.
type Server struct {
	*Registry
	listener net.Listener
	http     *http.Server
	certPEM  []byte

	connections atomic.Int64
}

// Start is Listen for tests: it panics where Listen fails. Close the server
// when done.
func Start(options Options) *Server {
	server, err := Listen(options)
	if err != nil {
		panic(err)
	}
	return server
}

// Listen starts a registry on loopback.
func Listen(options Options) (*Server, error) {
	address := options.Address
	if address == "" {
		address = "127.0.0.1:0"
	}
	server := &Server{Registry: New(options)}
	var config *tls.Config
	if options.TLS {
		certificate, certPEM, err := throwAwayCertificate(x509.ExtKeyUsageServerAuth, options.Names)
		if err != nil {
			return nil, fmt.Errorf("start registry: %w", err)
		}
		config = serverTLS(options, certificate)
		server.certPEM = certPEM
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("start registry: %w", err)
	}
	server.listener = listener
	server.http = &http.Server{Handler: server.Registry, TLSConfig: config, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	server.http.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			server.connections.Add(1)
		}
	}
	switch {
	case options.TLS && options.HTTP2:
		go func() { _ = server.http.ServeTLS(listener, "", "") }()
		return server, nil
	case options.TLS:
		listener = tls.NewListener(listener, config)
	}
	go func() { _ = server.http.Serve(listener) }()
	return server, nil
}

func serverTLS(options Options, certificate tls.Certificate) *tls.Config {
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	switch {
	case options.ClientCAs != nil:
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, options.ClientCAs
	case options.AskCertificate:
		config.ClientAuth = tls.RequestClientCert
	}
	return config
}

// Connections returns how many connections were opened since the start.
func (s *Server) Connections() int { return int(s.connections.Load()) }

// NewClientCertificate makes a throw-away client certificate, and the pool for
// Options.ClientCAs.
func NewClientCertificate() (tls.Certificate, *x509.CertPool, error) {
	certificate, certPEM, err := throwAwayCertificate(x509.ExtKeyUsageClientAuth, nil)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("make client certificate: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certificate, pool, nil
}

// Host returns host:port, as in an image reference.
func (s *Server) Host() string { return s.listener.Addr().String() }

// Port returns the port alone, for a reference under another name.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Host())
	return port
}

// URL returns scheme://host:port.
func (s *Server) URL() string {
	if s.certPEM != nil {
		return "https://" + s.Host()
	}
	return "http://" + s.Host()
}

// CertPEM returns the certificate to trust, PEM encoded; nil without TLS.
func (s *Server) CertPEM() []byte { return s.certPEM }

// CertPool returns a pool with the certificate to trust; nil without TLS.
func (s *Server) CertPool() *x509.CertPool {
	if s.certPEM == nil {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.certPEM)
	return pool
}

// Close stops the server and ends every request that still runs.
func (s *Server) Close() { _ = s.http.Close() }

func throwAwayCertificate(usage x509.ExtKeyUsage, names []string) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "registrytest"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{usage},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              append([]string{"localhost"}, names...),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, certPEM, nil
}
