package peers_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/webhook/peers"
)

type netConn = net.Conn

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// mac is the protocol's MAC, written down a second time.
func mac(key []byte, label, nonce string, body []byte) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "quaymaster peers v2 %s\n%d\n%s\n%s", label, len(nonce), nonce, body)
	return hex.EncodeToString(h.Sum(nil))
}

// signedHeader is the header of a question, written down a second time.
func signedHeader(at time.Time, length int, body []byte) string {
	return fmt.Sprintf("%d %s %d %x", at.UnixMilli(), strings.Repeat("0", 32), length, sha256.Sum256(body))
}

// sealed is a question with a good MAC over a header that may say anything.
func sealed(key []byte, header string, body io.Reader) *http.Request {
	request := httptest.NewRequest(http.MethodPost, peers.Path, body)
	request.Header.Set("Quaymaster-Question", header)
	request.Header.Set("Quaymaster-Mac", mac(key, "question", "", []byte(header)))
	return request
}

// forged is a question that a client would not ask.
func forged(key []byte, at time.Time, keys []string) *http.Request {
	body, _ := json.Marshal(map[string]any{"keys": keys})
	return sealed(key, signedHeader(at, len(body), body), bytes.NewReader(body))
}
