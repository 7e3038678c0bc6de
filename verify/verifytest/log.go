package verifytest

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/transparency-dev/merkle/rfc6962"
)

// Log is a transparency log for signatures: a Merkle tree (RFC 6962) with
// signed checkpoints, and in Rekor v1 a promise for each entry. It is safe for
// concurrent use.
type Log struct {
	key    crypto.Signer
	id     []byte
	url    string
	origin string // first line of a checkpoint
	valid  span
	v2     bool
	// first is the index of the tree's first leaf in the whole log: Rekor v1 has had earlier
	// trees.
	first int64

	mu   sync.Mutex
	tree tree
}

// LogFault selects the one fault of a log entry.
type LogFault int

// The faults of a log entry.
const (
	// NoFault is a valid entry.
	NoFault LogFault = iota
	// WrongPromise is a promise (SignedEntryTimestamp) with a signature over other bytes.
	WrongPromise
	// WrongProof is an inclusion proof with one wrong hash.
	WrongProof
	// WrongCheckpoint is a checkpoint with a signature over other bytes.
	WrongCheckpoint
	// OldCheckpoint is a genuine checkpoint of an earlier tree than the proof's.
	OldCheckpoint
	// OtherPayload is an intoto entry with another payload than the envelope's; set
	// Record.Payload.
	OtherPayload
	// OtherSignature is a genuine entry of another signature by the same
	// signer.
	OtherSignature
	// Repeated adds the same entry twice.
	Repeated
)

// Record describes a log entry for a signature.
type Record struct {
	// Log is the log; the Sigstore's Rekor v1 if nil.
	Log *Log
	// Kind is the type of the entry. In Rekor v1 it is hashedrekord for a
	// message signature, dsse (if empty) or intoto for an envelope. In Rekor v2
	// it is hashedrekord (if empty), or dsse for an envelope; the latter is the
	// deprecated type that sigstore-go no longer takes.
	Kind string
	// Payload stores the envelope's payload in an intoto entry, as some logs do.
	Payload bool
	// Time is the integrated time; the time of signing if zero. Rekor v2 has
	// none.
	Time time.Time
	// NoPromise and NoProof omit the signed entry timestamp, or the inclusion proof and its
	// checkpoint. Rekor v2 never has a promise.
	NoPromise, NoProof bool
	// As is the log with the ID that the entry states; Log if nil.
	As *Log
	// Fault is the fault of the entry, if any.
	Fault LogFault
}

// entry is an entry of a log with its evidence.
type entry struct {
	kind, version string
	body          []byte
	logID         []byte
	index         int64 // in the whole log
	time          int64 // seconds since 1970, zero if the log states none
	promise       []byte
	proof         *proof
}

type proof struct {
	index, size int64 // in the tree
	hashes      [][]byte
	root        []byte
	checkpoint  string
}

// URL is the log's address in trusted roots, by which policies select it;
// nothing listens there.
func (l *Log) URL() string { return l.url }

// PublicPEM is the public key of the log.
func (l *Log) PublicPEM() []byte { return publicPEM(l.key.Public()) }

// ID is the log's ID, in hexadecimal.
func (l *Log) ID() string { return hex.EncodeToString(l.id) }

func (l *Log) host() string {
	u, err := url.Parse(l.url)
	if err != nil {
		panic(fmt.Sprintf("verifytest: parse a URL of our own: %v", err))
	}
	return u.Host
}

// fill adds some entries, so that every inclusion proof has hashes.
func (l *Log) fill() {
	for i := range 5 {
		l.tree.add(rfc6962.DefaultHasher.HashLeaf([]byte{byte(i)}))
	}
}

// add records a body and returns its proof.
func (l *Log) add(body []byte, fault LogFault) (*proof, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tree.add(rfc6962.DefaultHasher.HashLeaf(body))
	size := l.tree.size()
	p := &proof{index: size - 1, size: size, hashes: l.tree.path(size - 1), root: l.tree.root(size)}
	if fault == WrongProof {
		p.hashes[0] = rfc6962.DefaultHasher.HashLeaf(p.hashes[0])
	}
	var err error
	if fault == OldCheckpoint {
		p.checkpoint, err = l.checkpoint(size-1, l.tree.root(size-1), false)
	} else {
		p.checkpoint, err = l.checkpoint(size, p.root, fault == WrongCheckpoint)
	}
	return p, err
}

// checkpoint writes a signed note. The key's short name is the beginning of
// the log's ID, both in Rekor v1 and in v2.
func (l *Log) checkpoint(size int64, root []byte, wrong bool) (string, error) {
	text := fmt.Sprintf("%s\n%d\n%s\n", l.origin, size, base64.StdEncoding.EncodeToString(root))
	message := []byte(text)
	if wrong {
		message = append(message, "wrong\n"...)
	}
	signature, err := l.sign(message)
	if err != nil {
		return "", fmt.Errorf("sign a checkpoint: %w", err)
	}
	line := base64.StdEncoding.EncodeToString(append(append([]byte{}, l.id[:4]...), signature...))
	return fmt.Sprintf("%s\n\u2014 %s %s\n", text, l.host(), line), nil
}

func (l *Log) sign(message []byte) ([]byte, error) {
	if _, ok := l.key.Public().(ed25519.PublicKey); ok {
		return l.key.Sign(rand.Reader, message, crypto.Hash(0))
	}
	return l.key.Sign(rand.Reader, sum(crypto.SHA256, message), crypto.SHA256)
}

// tree is a Merkle tree (RFC 6962, 2.1). levels[k] holds the roots of the complete subtrees of
// 2^k leaves, so that a proof is cheap in a large tree.
type tree struct{ levels [][][]byte }

func (t *tree) size() int64 {
	if len(t.levels) == 0 {
		return 0
	}
	return int64(len(t.levels[0]))
}

func (t *tree) add(leaf []byte) {
	node := leaf
	for k := 0; ; k++ {
		if k == len(t.levels) {
			t.levels = append(t.levels, nil)
		}
		t.levels[k] = append(t.levels[k], node)
		n := len(t.levels[k])
		if n%2 == 1 {
			return
		}
		node = rfc6962.DefaultHasher.HashChildren(t.levels[k][n-2], node)
	}
}

// root is the root of the tree of the first leaves.
func (t *tree) root(size int64) []byte { return t.hash(0, size) }

// hash is the root of the leaves from begin to end.
func (t *tree) hash(begin, end int64) []byte {
	level, width := split(end - begin)
	if width == end-begin {
		return t.levels[level][begin/width]
	}
	return rfc6962.DefaultHasher.HashChildren(t.hash(begin, begin+width), t.hash(begin+width, end))
}

// path is the inclusion proof of a leaf in the whole tree.
func (t *tree) path(leaf int64) [][]byte {
	var hashes [][]byte
	begin, end := int64(0), t.size()
	for end-begin > 1 {
		_, width := split(end - begin)
		if width == end-begin {
			width /= 2
		}
		if leaf < begin+width {
			hashes = append([][]byte{t.hash(begin+width, end)}, hashes...)
			end = begin + width
		} else {
			hashes = append([][]byte{t.hash(begin, begin+width)}, hashes...)
			begin += width
		}
	}
	return hashes
}

// split is the largest power of two that is not larger than n, and its
// exponent.
func split(n int64) (level int, width int64) {
	width = 1
	for width*2 <= n {
		width *= 2
		level++
	}
	return level, width
}
