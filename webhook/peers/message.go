package peers

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// Path is where the door stands.
const Path = "/peers/recall"

// macHeader carries the MAC of a body, in hexadecimal.
const macHeader = "Quaymaster-Mac"

// Bounds of the protocol.
const (
	// MaxKeys bounds the facts that are asked for at once: more questions than
	// one image of any known policy raises.
	MaxKeys = 64
	// minKey is the least length of the replicas' key in bytes, that of the hash.
	minKey = sha256.Size
	// maxRequest bounds a request: 64 keys of 4 KiB, with room for escapes.
	maxRequest = 512 << 10
	// maxFact bounds one fact, and maxFacts an answer's facts together, in bytes:
	// several statements of the largest size that is shared.
	maxFact, maxFacts = 1 << 20, 6 << 20
	// maxAnswer bounds an answer as it travels: base64 adds a third.
	maxAnswer = 9 << 20
	// maxStale is how far the clocks of two replicas may be apart.
	maxStale = 30 * time.Second
	// nonceBytes make a nonce that is never met twice.
	nonceBytes = 16
)

// question is the body of a request.
type question struct {
	Keys  []string  `json:"keys"`
	Nonce string    `json:"nonce"`
	Time  time.Time `json:"time"`
}

// answer is the body of a response.
type answer struct {
	Facts map[string][]byte `json:"facts"`
}

// secret makes and checks MACs. Requests and answers have labels of their own, so
// that neither is ever taken for the other.
type secret struct{ key []byte }

func newSecret(key []byte) (secret, error) {
	if len(key) < minKey {
		return secret{}, fmt.Errorf("the replicas' key has %d bytes: want at least %d random ones", len(key), minKey)
	}
	return secret{key: append([]byte(nil), key...)}, nil
}

func (s secret) sum(label, nonce string, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "quaymaster peers v1 %s\n%d\n%s\n", label, len(nonce), nonce)
	h.Write(body)
	return h.Sum(nil)
}

func (s secret) ofQuestion(body []byte) string {
	return hex.EncodeToString(s.sum("question", "", body))
}

func (s secret) ofAnswer(nonce string, body []byte) string {
	return hex.EncodeToString(s.sum("answer", nonce, body))
}

// errForeign says no more, on purpose.
var errForeign = errors.New("not a replica's message")

// open checks a question's MAC and time and reads it; nothing of a stranger's is
// parsed.
func (s secret) open(body []byte, mac string, now time.Time) (question, error) {
	if !hmac.Equal([]byte(mac), []byte(s.ofQuestion(body))) {
		return question{}, errForeign
	}
	var q question
	if err := json.Unmarshal(body, &q, json.RejectUnknownMembers(true)); err != nil {
		return question{}, fmt.Errorf("question of a replica: %w", err)
	}
	switch {
	case now.Sub(q.Time).Abs() > maxStale:
		return question{}, errForeign
	case len(q.Nonce) != 2*nonceBytes:
		return question{}, errForeign
	case len(q.Keys) > MaxKeys:
		return question{}, fmt.Errorf("question of a replica: %d keys, at most %d", len(q.Keys), MaxKeys)
	}
	return q, nil
}

// openAnswer checks that an answer is a replica's, to this very question.
func (s secret) openAnswer(nonce string, body []byte, mac string) (answer, error) {
	if !hmac.Equal([]byte(mac), []byte(s.ofAnswer(nonce, body))) {
		return answer{}, errForeign
	}
	var a answer
	if err := json.Unmarshal(body, &a, json.RejectUnknownMembers(true)); err != nil {
		return answer{}, fmt.Errorf("answer of a replica: %w", err)
	}
	return a, nil
}

func newNonce() string {
	var b [nonceBytes]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(b[:])
}
