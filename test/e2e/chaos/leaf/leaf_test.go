package leaf_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/leaf"
	"github.com/quaymaster/quaymaster/webhook/certificate"
)

// authority signs leaves for a server on this machine.
type authority struct {
	own *x509.Certificate
	key *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{own, key}
}

// leaf returns a certificate that holds for an hour, as a Secret has it.
func (a authority) leaf(t *testing.T) (certificatePEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.own, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), encode(t, key)
}

func encode(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// TestExpire distinguishes a gateway that renews its certificate from one that does not, and
// from one that presents an expired one.
func TestExpire(t *testing.T) {
	for _, row := range []struct {
		reason string
		// shows chooses among the leaf of before, the one in the Secret now, and a new one.
		shows func(before, now, renewed tls.Certificate) tls.Certificate
		want  string
	}{
		{"it renews what has ended", func(_, _, renewed tls.Certificate) tls.Certificate { return renewed }, ""},
		{"it does not look", func(before, _, _ tls.Certificate) tls.Certificate { return before }, "of before"},
		{"it takes what has ended", func(_, now, _ tls.Certificate) tls.Certificate { return now }, "expired"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			a := newAuthority(t)
			first, firstKey := a.leaf(t)
			client := fake.NewClientset(&core.Secret{
				ObjectMeta: meta.ObjectMeta{Namespace: "quaymaster", Name: "quaymaster-certificate"},
				Data: map[string][]byte{
					certificate.EntryBundle:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.own.Raw}),
					certificate.EntryAuthority: encode(t, a.key), certificate.EntryCertificate: first, certificate.EntryKey: firstKey,
				},
			})
			inSecret := func() (tls.Certificate, error) {
				secret, err := client.CoreV1().Secrets("quaymaster").Get(t.Context(), "quaymaster-certificate", meta.GetOptions{})
				if err != nil {
					return tls.Certificate{}, err
				}
				return tls.X509KeyPair(secret.Data[certificate.EntryCertificate], secret.Data[certificate.EntryKey])
			}
			before, err := inSecret()
			if err != nil {
				t.Fatal(err)
			}
			renewed, err := tls.X509KeyPair(a.leaf(t))
			if err != nil {
				t.Fatal(err)
			}
			ctx, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			var looks atomic.Int32
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				now, err := inSecret()
				if err != nil {
					return nil, err
				}
				if now.Leaf.Equal(before.Leaf) {
					return &tls.Config{Certificates: []tls.Certificate{before}}, nil
				}
				if looks.Add(1) > 3 {
					giveUp() // it never changes
				}
				return &tls.Config{Certificates: []tls.Certificate{row.shows(before, now, renewed)}}, nil
			}}
			server.StartTLS()
			defer server.Close()
			err = leaf.Expire(ctx, client, server.Listener.Addr().String())
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
			if now, err := inSecret(); err != nil || time.Now().Before(now.Leaf.NotAfter) {
				t.Errorf("the leaf in the Secret has not ended: %v", err)
			}
		})
	}
}
