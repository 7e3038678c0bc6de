package limits

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// maxEntry is the greatest size of a log entry's body, without a payload. Bodies have some
// kilobytes: hashes, signatures and the signers' certificates.
const maxEntry = 64 << 10

// maxCheckpoint is the greatest size of a log's checkpoint: a head, and the signatures of the log
// and of witnesses.
const maxCheckpoint = 16 << 10

// maxBlocks bounds the keys or certificates in one text of an entry, because Rekor builds chains
// of them. A signer, an intermediate and a root are common.
const maxBlocks = 3

// Entry measures the body of a log entry. It refuses the content of a proposal, which logs do not
// store, and long keys. The one exception is the payload of an intoto entry, which some logs
// store. While parsing, Rekor verifies each of the entry's signatures over it with each key, so
// an entry with a payload may have only one signature. Every name and text counts at any depth,
// because JSON parsers differ about repeated names.
func Entry(body []byte) error {
	m := measured{size: len(body)}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // as Rekor does: a large number does not end the parsing
	for {
		token, err := decoder.Token()
		if err != nil {
			return m.end() // the end of the body, or an error that its parser reports
		}
		from := m.offset
		m.offset = int(decoder.InputOffset())
		if err := m.token(token, m.offset-from); err != nil {
			return err
		}
	}
}

// measured is the state of measuring one entry.
type measured struct {
	size, offset int // of the body; end of the latest token
	open         []json.Delim
	name         string // of the member of the next value
	named        bool

	payloads, carried int // number of payloads, and their size
	signatures, keys  int // members of the signatures of an intoto entry
}

// token measures one token of a length.
func (m *measured) token(token json.Token, length int) error {
	text, _ := token.(string)
	_, isNumber := token.(json.Number)
	within := func(kind json.Delim) bool { return len(m.open) > 0 && m.open[len(m.open)-1] == kind }
	switch delim, isDelim := token.(json.Delim); {
	case delim == '{' || delim == '[':
		m.open, m.named = append(m.open, delim), false
	case isDelim:
		m.open, m.named = m.open[:len(m.open)-1], false
	case isNumber && within('['):
		return errors.New("the log entry has a list of numbers, which may be read as bytes")
	case !m.named && within('{'):
		m.name, m.named = text, true
		if strings.EqualFold(m.name, "proposedContent") {
			return fmt.Errorf("the log entry has a member %s, which only a proposal has", m.name)
		}
	case m.named:
		m.named = false
		return m.value(text, length)
	default:
		return m.text(text)
	}
	return m.bounded(m.offset)
}

// value measures the text of a member; other values have none.
func (m *measured) value(text string, length int) error {
	switch {
	case text == "":
	case strings.EqualFold(m.name, "envelope"):
		return errors.New("the log entry has a text as its envelope, which only a proposal has")
	case strings.EqualFold(m.name, "payload"):
		m.payloads, m.carried = m.payloads+1, m.carried+length
		return nil // large, and no parser reads keys in it
	case strings.EqualFold(m.name, "sig"):
		m.signatures++
	case strings.EqualFold(m.name, "publicKey"):
		m.keys++
	}
	return m.text(text)
}

func (m *measured) text(text string) error {
	if err := m.bounded(m.offset); err != nil {
		return err
	}
	if err := encodedKeys(text); err != nil {
		return fmt.Errorf("the log entry: %w", err)
	}
	return nil
}

// bounded checks the size up to an offset, without payloads. It precedes the search for keys,
// because the cost of that search grows with the text.
func (m *measured) bounded(offset int) error {
	if offset-m.carried > maxEntry {
		return fmt.Errorf("the log entry has %d bytes without its payload, more than the bound of %d", m.size-m.carried, maxEntry)
	}
	return nil
}

// end makes the checks that need the whole entry.
func (m *measured) end() error {
	switch {
	case m.payloads > 1:
		return fmt.Errorf("the log entry has %d payloads, and an envelope has one", m.payloads)
	case m.payloads == 1 && (m.signatures > 1 || m.keys > 1):
		return fmt.Errorf("the log entry has a payload and %d signatures of %d keys, more than the bound of 1", m.signatures, m.keys)
	default:
		return m.bounded(m.size)
	}
}

// Checkpoint measures a log's signed checkpoint. Repetitions of a genuine signature are possible,
// and each is verified.
func Checkpoint(note string) error {
	if len(note) > maxCheckpoint {
		return fmt.Errorf("the checkpoint has %d bytes, more than the bound of %d", len(note), maxCheckpoint)
	}
	return nil
}

// encodedKeys measures the keys and certificates of a text: PEM in base64, or DER in base64.
func encodedKeys(text string) error {
	if len(text) < leastRefused {
		return nil
	}
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		content = []byte(text)
	}
	if err := keyOf(content); err != nil {
		return err
	}
	for blocks := 0; ; blocks++ {
		block, rest := pem.Decode(content)
		switch {
		case block == nil:
			return nil
		case blocks == maxBlocks:
			return fmt.Errorf("it has a chain of more than %d certificates", maxBlocks)
		}
		if err := keyOf(block.Bytes); err != nil {
			return err
		}
		content = rest
	}
}

func keyOf(der []byte) error {
	if key, err := x509.ParsePKIXPublicKey(der); err == nil {
		return Key(key)
	}
	if key, err := x509.ParsePKCS1PublicKey(der); err == nil {
		return Key(key)
	}
	return Certificate(der)
}
