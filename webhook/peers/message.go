package peers

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Path is the path of the endpoint.
const Path = "/peers/recall"

const (
	// macHeader carries a MAC, in hexadecimal.
	macHeader = "Quaymaster-Mac"
	// questionHeader carries the input of a request's MAC: time, nonce, and length and SHA-256 of
	// the body. A replica can thus authenticate a request before it reads the body.
	questionHeader = "Quaymaster-Question"
)

// Limits of the protocol.
const (
	// MaxKeys bounds the facts in one request. It exceeds the number that one image needs under any
	// known policy.
	MaxKeys = 64
	// minKey is the minimum length of the replicas' key in bytes, the size of the hash.
	minKey = sha256.Size
	// MaxKey bounds a key, in bytes. A key contains two hashes, a digest and a predicate type,
	// which is a URL: a few hundred bytes in all.
	MaxKey = 1 << 10
	// maxRequest bounds a request's body: MaxKeys of MaxKey plus a quarter for quotes and escapes.
	maxRequest = MaxKeys * (MaxKey + MaxKey/4)
	// maxReading bounds the bodies that are read concurrently. A replica's body arrives almost at
	// once, and all of them together take 1.25 MiB.
	maxReading = 16
	// readTime bounds the arrival of a body. Bodies are small, and replicas are close.
	readTime = 2 * time.Second
	// maxFact bounds one fact, and maxFacts all facts of a response, in bytes: several statements
	// of the largest shared size.
	maxFact, maxFacts = 1 << 20, 6 << 20
	// maxAnswer bounds a response on the wire: base64 adds a third.
	maxAnswer = 9 << 20
	// maxStale is the tolerated clock difference between two replicas.
	maxStale = 30 * time.Second
	// maxEnvelope bounds the header of a request: four short words.
	maxEnvelope = 256
	// nonceBytes is the size of a nonce. It is large enough to be unique.
	nonceBytes = 16
)

// factRequest is the body of a request.
type factRequest struct {
	Keys []string `json:"keys"`
}

// signedHeader is the content of a request's header.
type signedHeader struct {
	Time   time.Time // to the millisecond
	Nonce  string
	Length int64
	Hash   string // SHA-256 of the body, in hexadecimal
}

func headerOf(body []byte, now time.Time) signedHeader {
	return signedHeader{Time: now, Nonce: newNonce(), Length: int64(len(body)), Hash: hashOf(body)}
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (e signedHeader) String() string {
	return fmt.Sprintf("%d %s %d %s", e.Time.UnixMilli(), e.Nonce, e.Length, e.Hash)
}

// parseHeader parses the output of String. Its MAC was already verified.
func parseHeader(text string) (signedHeader, error) {
	parts := strings.Split(text, " ")
	if len(parts) != 4 || len(parts[1]) != 2*nonceBytes {
		return signedHeader{}, errForeign
	}
	millis, err := strconv.ParseInt(parts[0], 10, 64)
	length, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || err2 != nil {
		return signedHeader{}, errForeign
	}
	return signedHeader{Time: time.UnixMilli(millis), Nonce: parts[1], Length: length, Hash: parts[3]}, nil
}

// factResponse is the body of a response.
type factResponse struct {
	Facts map[string][]byte `json:"facts"`
}

// secret computes and verifies MACs. Requests and responses have different labels, and so do the
// endpoints. A message cannot be replayed as one of another kind.
type secret struct {
	key  []byte
	path string // prefix of the labels; empty for facts
}

func newSecret(key []byte, path string) (secret, error) {
	if len(key) < minKey {
		return secret{}, fmt.Errorf("the replicas' key has %d bytes: at least %d random bytes are required", len(key), minKey)
	}
	return secret{key: append([]byte(nil), key...), path: path}, nil
}

func (s secret) sum(label, nonce string, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "quaymaster peers v2 %s\n%d\n%s\n", s.path+label, len(nonce), nonce)
	h.Write(body)
	return h.Sum(nil)
}

func (s secret) requestMAC(header string) string {
	return hex.EncodeToString(s.sum("question", "", []byte(header)))
}

func (s secret) responseMAC(nonce string, body []byte) string {
	return hex.EncodeToString(s.sum("answer", nonce, body))
}

// errForeign omits the reason on purpose.
var errForeign = errors.New("not a replica's message")

// open authenticates a request's header and checks its age. Unauthenticated input is not parsed.
func (s secret) open(header, mac string, now time.Time) (signedHeader, error) {
	if len(header) > maxEnvelope || !hmac.Equal([]byte(mac), []byte(s.requestMAC(header))) {
		return signedHeader{}, errForeign
	}
	e, err := parseHeader(header)
	if err != nil {
		return signedHeader{}, err
	}
	if now.Sub(e.Time).Abs() > maxStale {
		return signedHeader{}, errForeign
	}
	if e.Length < 0 || e.Length > maxRequest {
		return signedHeader{}, fmt.Errorf("request of a replica: %d bytes, at most %d", e.Length, maxRequest)
	}
	return e, nil
}

// openRequest parses the body and checks it against the header.
func (e signedHeader) openRequest(body []byte) (factRequest, error) {
	var q factRequest
	if err := e.read(body, &q); err != nil {
		return factRequest{}, err
	}
	if len(q.Keys) > MaxKeys {
		return factRequest{}, fmt.Errorf("request of a replica: %d keys, at most %d", len(q.Keys), MaxKeys)
	}
	return q, nil
}

// read decodes a body that matches the header's length and hash.
func (e signedHeader) read(body []byte, into any) error {
	if int64(len(body)) != e.Length || hashOf(body) != e.Hash {
		return errForeign
	}
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("request of a replica: %w", err)
	}
	return nil
}

// openResponse authenticates a response to this very request and decodes it.
func (s secret) openResponse(nonce string, body []byte, mac string, into any) error {
	if !hmac.Equal([]byte(mac), []byte(s.responseMAC(nonce, body))) {
		return errForeign
	}
	if err := json.Unmarshal(body, into, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("response of a replica: %w", err)
	}
	return nil
}

func newNonce() string {
	var b [nonceBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}
