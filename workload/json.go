package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// parseJSON decodes an object in one pass and refuses what parsers read
// differently: names that stand twice, and text that is not UTF-8.
func parseJSON(raw []byte) (map[string]any, error) {
	p := newParser(raw)
	value, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("JSON: something follows the object")
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("JSON: want an object, got %s", typeName(value))
	}
	return content, nil
}

// parser decodes into what encoding/json would: maps, lists, texts, float64. It
// makes one copy of the input, of which its texts are parts.
type parser struct {
	decoder *jsontext.Decoder
	input   string
}

func newParser(raw []byte) *parser {
	input := string(raw)
	// The names are looked at below, where the map that is built anyway knows them.
	return &parser{input: input, decoder: jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))}
}

// value reads one value, which is nested depth deep.
func (p *parser) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested more than %d deep (MaxDepth)", MaxDepth)
	}
	switch p.decoder.PeekKind() {
	case jsontext.KindBeginObject:
		return p.object(depth)
	case jsontext.KindBeginArray:
		return p.list(depth)
	case jsontext.KindString:
		return p.text()
	case jsontext.KindNumber:
		literal, err := p.decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		return strconv.ParseFloat(string(literal), 64)
	}
	token, err := p.decoder.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindTrue:
		return true, nil
	case jsontext.KindFalse:
		return false, nil
	}
	return nil, nil
}

func (p *parser) object(depth int) (any, error) {
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, err
	}
	object := map[string]any{}
	for {
		switch p.decoder.PeekKind() {
		case jsontext.KindString:
		default: // the end, or what the decoder refuses in the place of a name
			_, err := p.decoder.ReadToken()
			return object, err
		}
		name, err := p.text()
		if err != nil {
			return nil, err
		}
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		members := len(object)
		object[name] = value
		if len(object) == members {
			return nil, fmt.Errorf("the name %q stands twice in one object", name)
		}
	}
}

func (p *parser) list(depth int) (any, error) {
	if _, err := p.decoder.ReadToken(); err != nil {
		return nil, err
	}
	list := []any{}
	for p.decoder.PeekKind() != jsontext.KindEndArray {
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := p.decoder.ReadToken()
	return list, err
}

// text reads a text, as a part of the input where it has no escapes.
func (p *parser) text() (string, error) {
	quoted, err := p.decoder.ReadValue()
	if err != nil {
		return "", err
	}
	end := int(p.decoder.InputOffset())
	part := p.input[end-len(quoted)+1 : end-1]
	if strings.IndexByte(part, '\\') < 0 {
		return part, nil
	}
	unquoted, err := jsontext.AppendUnquote(nil, quoted)
	return string(unquoted), err
}
