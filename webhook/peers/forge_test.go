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
	fmt.Fprintf(h, "quaymaster peers v1 %s\n%d\n%s\n%s", label, len(nonce), nonce, body)
	return hex.EncodeToString(h.Sum(nil))
}

// forged is a question that a client would not ask.
func forged(key []byte, at time.Time, keys []string) *http.Request {
	body, _ := json.Marshal(map[string]any{"keys": keys, "nonce": strings.Repeat("0", 32), "time": at})
	request := httptest.NewRequest(http.MethodPost, peers.Path, bytes.NewReader(body))
	request.Header.Set("Quaymaster-Mac", mac(key, "question", "", body))
	return request
}
