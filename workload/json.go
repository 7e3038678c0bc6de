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

// parseJSON decodes an object into what encoding/json would: maps, lists, texts,
// float64. It refuses what parsers read differently: names that stand twice, and
// text that is not UTF-8.
func parseJSON(raw []byte) (map[string]any, error) {
	// The names are looked at below, where the map that is built anyway knows them.
	if !jsontext.Value(raw).IsValid(jsontext.AllowDuplicateNames(true)) {
		return nil, fault(raw)
	}
	return build(raw)
}

// build makes an object of a value whose grammar has been checked.
func build(raw []byte) (map[string]any, error) {
	var members [maxPending]member // for all the objects that are open at once, nearly always
	var elements [maxPending / 4]any
	b := builder{input: string(raw), members: members[:0], elements: elements[:0]}
	value, err := b.value(0)
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("JSON: want an object, got %s", typeName(value))
	}
	return content, nil
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

// builder makes values of one JSON value whose grammar has been checked, so that
// it need not look what comes, but where it ends. Its texts are parts of the
// input.
type builder struct {
	input string
	at    int
	// escape is where the next backslash is; the last one read where at is past it.
	escape int
	// members and elements are those of the objects and lists that are not at
	// their end, the innermost last: what is complete is made in its right size.
	members  []member
	elements []any
	// empty is every object without members, of which managedFields is full.
	empty    map[string]any
	unquoted []byte
}

// member is one of an object.
type member struct {
	name  string
	value any
}

// maxPending bounds the members or elements of one object or list that wait for
// its end: what takes more grows as it is read, and not in two places.
const maxPending = 32

// peek returns the first byte of the next token, past separators.
func (b *builder) peek() byte {
	for ; ; b.at++ {
		switch c := b.input[b.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
}

// value reads one value, which is nested depth deep.
func (b *builder) value(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nested more than %d deep (MaxDepth)", MaxDepth)
	}
	switch b.peek() {
	case '{':
		return b.object(depth)
	case '[':
		return b.list(depth)
	case '"':
		return b.text()
	case 't':
		b.at += len("true")
		return true, nil
	case 'f':
		b.at += len("false")
		return false, nil
	case 'n':
		b.at += len("null")
		return nil, nil
	}
	return b.number()
}

func (b *builder) number() (any, error) {
	start := b.at
	for b.at < len(b.input) && strings.IndexByte("+-.0123456789Ee", b.input[b.at]) >= 0 {
		b.at++
	}
	return strconv.ParseFloat(b.input[start:b.at], 64)
}

func (b *builder) object(depth int) (any, error) {
	b.at++
	var object map[string]any
	begin := len(b.members)
	for b.peek() != '}' {
		name, err := b.text()
		if err != nil {
			return nil, err
		}
		value, err := b.value(depth + 1)
		if err != nil {
			return nil, err
		}
		b.members = append(b.members, member{name, value})
		if len(b.members)-begin == maxPending {
			if object, err = b.keep(object, begin); err != nil {
				return nil, err
			}
		}
	}
	b.at++
	if object == nil && len(b.members) == begin {
		if b.empty == nil {
			b.empty = map[string]any{}
		}
		return b.empty, nil
	}
	return b.keep(object, begin)
}

// keep moves the members from begin on into the object, which nil begins.
func (b *builder) keep(object map[string]any, begin int) (map[string]any, error) {
	if object == nil {
		object = make(map[string]any, len(b.members)-begin)
	}
	for _, m := range b.members[begin:] {
		before := len(object)
		object[m.name] = m.value
		if len(object) == before {
			return nil, fmt.Errorf("the name %q stands twice in one object", m.name)
		}
	}
	b.members = b.members[:begin]
	return object, nil
}

func (b *builder) list(depth int) (any, error) {
	b.at++
	list := []any{}
	begin := len(b.elements)
	for b.peek() != ']' {
		value, err := b.value(depth + 1)
		if err != nil {
			return nil, err
		}
		b.elements = append(b.elements, value)
		if len(b.elements)-begin == maxPending {
			list = append(list, b.elements[begin:]...)
			b.elements = b.elements[:begin]
		}
	}
	b.at++
	list = append(list, b.elements[begin:]...)
	b.elements = b.elements[:begin]
	return list, nil
}

// text reads a text, as a part of the input where it has no escapes.
func (b *builder) text() (string, error) {
	start := b.at + 1
	end := start + strings.IndexByte(b.input[start:], '"')
	if b.escape < start {
		b.escape = len(b.input)
		if i := strings.IndexByte(b.input[start:], '\\'); i >= 0 {
			b.escape = start + i
		}
	}
	if end < b.escape {
		b.at = end + 1
		return b.input[start:end], nil
	}
	for end = start; b.input[end] != '"'; end++ {
		if b.input[end] == '\\' {
			end++
		}
	}
	b.at = end + 1
	var err error
	b.unquoted, err = jsontext.AppendUnquote(b.unquoted[:0], b.input[start-1:b.at])
	return string(b.unquoted), err
}
