package limits

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const (
	// maxValues bounds the tokens of a document that a policy or its repository chooses. Parsers make a
	// map or an object of a few bytes, so memory grows with them and not with the size. The public-good
	// trusted root has some 500, and 1,000 targets of a TUF repository have 14,000.
	maxValues = 20_000
	// maxKeyIDs bounds the key identifiers of a document of TUF, those of all its roles together. For each,
	// also one that is repeated, go-tuf encodes the signed document again and verifies a signature. The
	// public-good repository has some 20.
	maxKeyIDs = 128
)

// Document measures a JSON document of a trusted root or of TUF before it is parsed: the number of its
// values, its keys in PEM, and the key identifiers of TUF's roles. Keys in other encodings are measured
// after parsing. A document without an end passes, because its parser reports the error.
func Document(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a large number does not end the parsing
	values, ids := 0, 0
	var named, listed bool // the previous token is the name of a list of identifiers; within such a list
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil //nolint:nilerr // the end, or an error that the parser reports
		}
		values++
		if values > maxValues {
			return fmt.Errorf("the document has more than %d values, the bound", maxValues)
		}
		value, isText := token.(string)
		delim, isDelim := token.(json.Delim)
		if isDelim {
			listed = named && delim == '['
		} else if listed {
			ids++
		}
		if ids > maxKeyIDs {
			return fmt.Errorf("the document has more than %d key identifiers, the bound", maxKeyIDs)
		}
		named = isText && bytes.EqualFold([]byte(value), []byte("keyids"))
		if err := encodedKeys(value); err != nil {
			return fmt.Errorf("the document: %w", err)
		}
	}
}
