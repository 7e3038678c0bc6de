package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// parseJSON parses one JSON object. It refuses JSON that parsers read differently: repeated
// names, and text that is not UTF-8.
func parseJSON(raw []byte) (*document, error) {
	// Names are compared below, for the whole object at once.
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, fault(raw)
	}
	return read(string(raw))
}

// read indexes an object with a checked grammar.
func read(text string) (*document, error) {
	nodes, err := index(text)
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	if kind := nodes[0].kind; kind != jsontext.KindBeginObject {
		return nil, fmt.Errorf("JSON: want an object, got %s", kindName(kind))
	}
	return &document{text: text, nodes: nodes}, nil
}

// fault returns the reason why a text is not one JSON value.
func fault(raw []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	switch _, err := decoder.ReadValue(); {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("JSON: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return fmt.Errorf("JSON: %w", err)
	}
	return errors.New("JSON: something follows the object")
}

// kindName describes the kind of a value in messages.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "true or false"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindString:
		return "text"
	case jsontext.KindBeginArray:
		return "a list"
	default:
		return "an object"
	}
}
