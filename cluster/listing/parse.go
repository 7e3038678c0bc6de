package listing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

// parse parses a list without decoding its objects, which in a list of a built-in kind have no
// kind and apiVersion. An unreadable object is reported, and does not affect the others.
func parse(text []byte, kind scan.Kind) (scan.Page, error) {
	var page scan.Page
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	err := each(decoder, jsontext.KindBeginObject, func() error {
		name, err := decoder.ReadToken()
		if err != nil {
			return err
		}
		switch name.String() {
		case "metadata":
			return readEnd(decoder, &page)
		case "items":
			if decoder.PeekKind() == jsontext.KindNull { // some aggregated APIs return null for an empty list
				return decoder.SkipValue()
			}
			return each(decoder, jsontext.KindBeginArray, func() error { return readItem(decoder, kind, &page) })
		}
		return decoder.SkipValue()
	})
	if err != nil {
		return scan.Page{}, fmt.Errorf("a page of %s: %w", kind.Resource, err)
	}
	return page, nil
}

// each calls do for each member of an object, at its name, or element of an array.
func each(decoder *jsontext.Decoder, want jsontext.Kind, do func() error) error {
	if decoder.PeekKind() != want {
		return errors.New("the API server's answer is no list")
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for {
		switch decoder.PeekKind() {
		case jsontext.KindEndObject, jsontext.KindEndArray:
			_, err := decoder.ReadToken()
			return err
		case jsontext.KindInvalid:
			_, err := decoder.ReadToken()
			return err
		}
		if err := do(); err != nil {
			return err
		}
	}
}

// readEnd reads the continue token of the list.
func readEnd(decoder *jsontext.Decoder, page *scan.Page) error {
	value, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	var end struct {
		Continue           string `json:"continue"`
		RemainingItemCount int64  `json:"remainingItemCount"`
		ResourceVersion    string `json:"resourceVersion"`
	}
	if err := json.Unmarshal(value, &end); err != nil {
		return err
	}
	page.Continue, page.Remaining, page.Version = end.Continue, end.RemainingItemCount, end.ResourceVersion
	return nil
}

// bareItem is the beginning of an item without kind and apiVersion.
const bareItem = `{"metadata":`

func readItem(decoder *jsontext.Decoder, kind scan.Kind, page *scan.Page) error {
	value, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	var object workload.Object
	if bytes.HasPrefix(value, []byte(bareItem)) {
		object, err = workload.ParseValue(named(value, kind))
	} else {
		object, err = workload.ParseValue(value)
		if errors.Is(err, workload.ErrNoKind) {
			object, err = workload.ParseValue(named(value, kind))
		}
	}
	if err != nil {
		page.Unreadable = append(page.Unreadable, err)
		return nil
	}
	page.Objects = append(page.Objects, object)
	return nil
}

// named adds kind and apiVersion to an item. An item that has them has duplicate names then, and
// cannot be parsed.
func named(value jsontext.Value, kind scan.Kind) jsontext.Value {
	version := kind.Version
	if kind.Group != "" {
		version = kind.Group + "/" + kind.Version
	}
	made := make([]byte, 0, len(value)+len(version)+len(kind.Kind)+32)
	made = append(made, `{"apiVersion":`...)
	made = append(made, quoted(version)...)
	made = append(made, `,"kind":`...)
	made = append(made, quoted(kind.Kind)...)
	rest := bytes.TrimSpace(value[1:])
	if len(rest) > 0 && rest[0] != '}' {
		made = append(made, ',')
	}
	return append(made, rest...)
}

func quoted(text string) []byte {
	encoded, err := json.Marshal(text)
	if err != nil {
		return []byte(`""`) // text can always be encoded
	}
	return encoded
}
