package decisionlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog/internal/segment"
)

// Position is a position in a chain: the number and the hash of the last line. The zero Position
// is before the first line.
type Position struct {
	Seq  uint64
	Hash [sha256.Size]byte
}

// After returns the position after a line, without its line break.
func (p Position) After(line []byte) Position {
	return Position{Seq: p.Seq + 1, Hash: sha256.Sum256(line)}
}

// Chain numbers and hashes lines, each from the line before. It is not safe for concurrent use.
type Chain struct {
	version int // of its lines
	replica string
	at      Position
	text    bytes.Buffer
	encoder *json.Encoder
}

// NewChain continues a chain after a position.
func NewChain(replica string, after Position) (*Chain, error) {
	if replica == "" || len(replica) > maxName {
		return nil, errors.New("decision log: want the name of the replica that writes it")
	}
	c := &Chain{version: Version, replica: replica, at: after}
	c.encoder = json.NewEncoder(&c.text)
	c.encoder.SetEscapeHTML(false) // references and identities stay readable
	return c, nil
}

// Position is the position of the last line.
func (c *Chain) Position() Position { return c.at }

// Return goes back to an earlier position, because the lines after it were not written.
func (c *Chain) Return(to Position) { c.at = to }

// Append appends the line of an entry, with its line break, to text. It sets the entry's chain
// fields.
func (c *Chain) Append(text []byte, e *Entry) ([]byte, error) {
	c.place(e)
	c.text.Reset()
	if err := c.encoder.Encode(e); err != nil {
		return text, fmt.Errorf("decision log: %w", err)
	}
	line := c.text.Bytes()
	if len(line) > segment.MaxLine {
		return text, fmt.Errorf("decision log: a line of %d bytes, of which at most %d are read", len(line), segment.MaxLine)
	}
	c.at = c.at.After(line[:len(line)-1])
	return append(text, line...), nil
}

// place sets the chain fields of an entry.
func (c *Chain) place(e *Entry) {
	e.V, e.Seq, e.Prev, e.Replica = c.version, c.at.Seq+1, hex.EncodeToString(c.at.Hash[:]), c.replica
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
}

// AppendCheckpoint appends a checkpoint of all lines before it, signed by a key.
func (c *Chain) AppendCheckpoint(text []byte, chain string, at time.Time, closed bool, key *Key) ([]byte, error) {
	e := Entry{Kind: KindCheckpoint, Time: at, Checkpoint: &Checkpoint{Chain: chain, Key: key.ID(), Closed: closed}}
	c.place(&e)
	var err error
	e.Checkpoint.Signature, err = key.sign(SignedText(&e))
	if err != nil {
		return text, fmt.Errorf("decision log: sign a checkpoint: %w", err)
	}
	return c.Append(text, &e)
}

// SignedText is the text that the signature of a checkpoint covers.
func SignedText(e *Entry) []byte {
	return fmt.Appendf(nil, "quaymaster decision log checkpoint v1\n%s\n%s\n%d\n%s\n%s\n%t\n",
		e.Checkpoint.Chain, e.Replica, e.Seq, e.Prev, e.Time.Format(time.RFC3339Nano), e.Checkpoint.Closed)
}
