package sigstore

import (
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/quaymaster/quaymaster/test/peers"
)

// TSA is the real timestamp authority, with a key in its memory.
type TSA struct {
	// URL is what timestamps are asked of (RFC 3161).
	URL string
	// Chain is its certificates, the root last.
	Chain []*x509.Certificate
	// Stop ends it before the test does. Its metrics have a fixed port, so there
	// is one at a time on a machine, and the next one waits.
	Stop func()
}

// StartTSA runs a timestamp authority until it is stopped or the test ends.
func StartTSA(t testing.TB) *TSA {
	t.Helper()
	port := freePorts(t, 1)[0]
	base := "http://127.0.0.1:" + port
	a := &TSA{URL: base + "/api/v1/timestamp"}
	a.Stop = start(t, peers.TimestampServer, base+"/ping",
		"serve", "--host=127.0.0.1", "--port="+port, "--timestamp-signer=memory", "--disable-ntp-monitoring")
	a.Chain = certificates(t, string(ask(t, http.MethodGet, a.URL+"/certchain", "application/timestamp-query", nil)))
	if len(a.Chain) < 2 {
		t.Fatalf("the timestamp authority has %d certificates", len(a.Chain))
	}
	return a
}
