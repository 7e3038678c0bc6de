package sigstore_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"io"
	"net/http"
	"testing"

	"github.com/digitorus/timestamp"

	"github.com/quaymaster/quaymaster/test/peers"
)

// tsa is the real timestamp authority, with a key in its memory. Its metrics
// have a fixed port, so there is one at a time.
type tsa struct {
	url   string
	chain []*x509.Certificate // the root last
	stop  func()
}

func startTSA(t testing.TB) *tsa {
	t.Helper()
	port := freePorts(t, 1)[0]
	a := &tsa{url: "http://127.0.0.1:" + port}
	a.stop = start(t, peers.TimestampServer, a.url+"/ping",
		"serve", "--host=127.0.0.1", "--port="+port, "--timestamp-signer=memory", "--disable-ntp-monitoring")
	a.chain = certificates(t, string(a.ask(t, http.MethodGet, "/api/v1/timestamp/certchain", nil)))
	if len(a.chain) < 2 {
		t.Fatalf("the timestamp authority has %d certificates", len(a.chain))
	}
	return a
}

func (a *tsa) ask(t testing.TB, method, path string, body []byte) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, a.url+path, bytes.NewReader(body))
	check(t, err)
	request.Header.Set("Content-Type", "application/timestamp-query")
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	check(t, err)
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return text
}

// stamp returns a timestamp response (RFC 3161) for a signature.
func (a *tsa) stamp(t testing.TB, signature []byte) []byte {
	t.Helper()
	query, err := timestamp.CreateRequest(bytes.NewReader(signature), &timestamp.RequestOptions{Hash: crypto.SHA256, Certificates: true})
	check(t, err)
	return a.ask(t, http.MethodPost, "/api/v1/timestamp", query)
}
