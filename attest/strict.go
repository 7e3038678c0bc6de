package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// checkJSON refuses what parsers read differently: a key twice in one object,
// bytes after the value, text that is no UTF-8; and nesting past MaxDepth.
func checkJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("JSON is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var open []scope
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && len(open) == 0:
			return errors.New("JSON is empty")
		case errors.Is(err, io.EOF):
			return errors.New("JSON ends early")
		case err != nil:
			return fmt.Errorf("JSON: %w", err)
		}
		if open, err = step(open, token); err != nil {
			return err
		}
		if len(open) == 0 {
			break
		}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("JSON: more bytes follow the value")
	}
	return nil
}

// scope is an object or array that is still open.
type scope struct {
	keys    map[string]bool // nil for an array
	isValue bool            // in an object: the next token is a value
}

// step follows one token.
func step(open []scope, token json.Token) ([]scope, error) {
	delim, isDelim := token.(json.Delim)
	if isDelim && (delim == '}' || delim == ']') {
		return open[:len(open)-1], nil
	}
	if len(open) > 0 {
		top := &open[len(open)-1]
		if top.keys != nil && !top.isValue {
			key, _ := token.(string) // the decoder allows nothing else
			if top.keys[key] {
				return nil, fmt.Errorf("JSON: key %q is there twice", shorten(key))
			}
			top.keys[key], top.isValue = true, true
			return open, nil
		}
		top.isValue = false
	}
	switch {
	case isDelim && len(open) >= MaxDepth:
		return nil, fmt.Errorf("JSON is nested more than %d deep", MaxDepth)
	case isDelim && delim == '{':
		open = append(open, scope{keys: map[string]bool{}})
	case isDelim:
		open = append(open, scope{})
	}
	return open, nil
}

// fields reads the members of a JSON object by their exact names. Go's decoder
// would also take "Subject" for "subject", which other parsers do not: such a
// near miss is refused.
func fields(b []byte, names ...string) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(b, &members); err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	if members == nil {
		return nil, errors.New("want a JSON object, got null")
	}
	for key := range members {
		for _, name := range names {
			if key != name && strings.EqualFold(key, name) {
				return nil, fmt.Errorf("field %q: did you mean %q?", shorten(key), name)
			}
		}
	}
	return members, nil
}

// decode reads one member; one that is absent or null leaves v as it is.
func decode(members map[string]json.RawMessage, name string, v any) error {
	raw, ok := members[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("field %q: %w", name, err)
	}
	return nil
}

// shorten keeps foreign text in a message readable.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
