package effort

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

// maxEntry is the greatest size of a log entry's body. They have some kilobytes: hashes,
// signatures and the signers' certificates.
const maxEntry = 64 << 10

// maxCheckpoint is the greatest size of a log's checkpoint: a head, and the signatures of
// the log and of witnesses.
const maxCheckpoint = 16 << 10

// maxBlocks is how many keys or certificates one text of an entry may have: Rekor builds
// chains of them. A signer, an intermediate and a root are common.
const maxBlocks = 3

// Entry measures the body of a log entry, as it stands in the log: what only a proposal has
// (the envelope itself) is refused, and so is too long a key. It looks at every name and text
// wherever it stands, for parsers of JSON differ about names that stand twice.
func Entry(body []byte) error {
	if len(body) > maxEntry {
		return fmt.Errorf("the log entry has %d bytes, more than the bound of %d", len(body), maxEntry)
	}
	var (
		decoder = json.NewDecoder(bytes.NewReader(body))
		open    []json.Delim
		name    string // of the member whose value comes next
		named   bool
	)
	decoder.UseNumber() // as Rekor does: no number ends the reading by its size
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // its end, or whoever reads it next says what is wrong
		}
		text, _ := token.(string)
		_, isNumber := token.(json.Number)
		within := func(kind json.Delim) bool { return len(open) > 0 && open[len(open)-1] == kind }
		switch delim, isDelim := token.(json.Delim); {
		case delim == '{' || delim == '[':
			open, named = append(open, delim), false
		case isDelim:
			open, named = open[:len(open)-1], false
		case isNumber && within('['):
			return errors.New("the log entry has a list of numbers, which may be read as bytes")
		case !named && within('{'):
			if name, named = text, true; strings.EqualFold(name, "proposedContent") {
				return fmt.Errorf("the log entry has a member %s, which only a proposal has", name)
			}
		default:
			if err := value(name, text); named && err != nil {
				return err
			}
			if err := encodedKeys(text); err != nil {
				return fmt.Errorf("the log entry: %w", err)
			}
			named = false
		}
	}
}

// Checkpoint measures a log's signed checkpoint. A genuine signature may stand in it again
// and again, and each is proved.
func Checkpoint(note string) error {
	if len(note) > maxCheckpoint {
		return fmt.Errorf("the checkpoint has %d bytes, more than the bound of %d", len(note), maxCheckpoint)
	}
	return nil
}

// value refuses the envelope, or its payload, of an in-toto proposal.
func value(name, text string) error {
	if text != "" && (strings.EqualFold(name, "envelope") || strings.EqualFold(name, "payload")) {
		return fmt.Errorf("the log entry has a text as its %s, which only a proposal has", name)
	}
	return nil
}

// encodedKeys looks at the keys and certificates of a text: PEM in base64, or DER in base64.
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
