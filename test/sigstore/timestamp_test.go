package sigstore_test

import (
	"bytes"
	"crypto"
	"io"
	"net/http"
	"testing"

	"github.com/digitorus/timestamp"

	"github.com/quaymaster/quaymaster/test/peers/sigstore"
)

// tsa is the real timestamp authority.
type tsa struct{ *sigstore.TSA }

func startTSA(t testing.TB) *tsa {
	t.Helper()
	return &tsa{sigstore.StartTSA(t)}
}

// stamp returns a timestamp response (RFC 3161) for a signature.
func (a *tsa) stamp(t testing.TB, signature []byte) []byte {
	t.Helper()
	query, err := timestamp.CreateRequest(bytes.NewReader(signature), &timestamp.RequestOptions{Hash: crypto.SHA256, Certificates: true})
	check(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL, bytes.NewReader(query))
	check(t, err)
	request.Header.Set("Content-Type", "application/timestamp-query")
	response, err := http.DefaultClient.Do(request)
	check(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	check(t, err)
	if response.StatusCode/100 != 2 {
		t.Fatalf("%s: %s: %s", a.URL, response.Status, text)
	}
	return text
}
