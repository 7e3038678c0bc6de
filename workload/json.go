package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// parseJSON reads one JSON object. It refuses what parsers read differently: names
// that stand twice, and text that is not UTF-8.
func parseJSON(raw []byte) (*document, error) {
	// The names are looked at below, for the whole object at once.
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, fault(raw)
	}
	return read(string(raw))
}

// read indexes an object whose grammar has been checked.
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

// fault says why a text is not one JSON value.
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

// kindName says in plain words what a value is.
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
