package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/internal/strictjson"
)

// CheckJSON refuses JSON that parsers read differently: a repeated key in one object, bytes after
// the value, text that is not UTF-8. It also refuses nesting beyond MaxDepth and objects beyond
// MaxMembers. It always reads b twice.
func CheckJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("JSON is not UTF-8")
	}
	if !json.Valid(b) {
		return invalidJSON(b)
	}
	w := walk{text: b}
	return w.run()
}

// invalidJSON returns the error in b.
func invalidJSON(b []byte) error {
	var first json.RawMessage
	switch err := json.NewDecoder(bytes.NewReader(b)).Decode(&first); {
	case len(bytes.TrimSpace(b)) == 0:
		return errors.New("JSON is empty")
	case err != nil:
		return fmt.Errorf("JSON: %w", err)
	}
	return errors.New("JSON: more bytes follow the value")
}

// walk searches valid JSON for repeated keys. It allocates only for the depth, and for objects
// with many members.
type walk struct {
	text []byte
	open []scope
	keys [][]byte // of all open objects, outermost first
}

// scope is an object or array that is still open.
type scope struct {
	isObject bool
	wantsKey bool
	first    int             // its first key in walk.keys
	many     map[string]bool // its keys, beyond fewKeys
}

// fewKeys is how many keys are compared one by one.
const fewKeys = 16

func (w *walk) run() error {
	for i := 0; i < len(w.text); i++ {
		switch c := w.text[i]; c {
		case '"':
			end := stringEnd(w.text, i)
			if top := len(w.open) - 1; top >= 0 && w.open[top].wantsKey {
				if err := w.key(&w.open[top], w.text[i:end]); err != nil {
					return err
				}
			}
			i = end - 1
		case '{', '[':
			if len(w.open) >= MaxDepth {
				return fmt.Errorf("JSON is nested more than %d deep", MaxDepth)
			}
			w.open = append(w.open, scope{isObject: c == '{', wantsKey: c == '{', first: len(w.keys)})
		case '}', ']':
			top := len(w.open) - 1
			w.keys, w.open = w.keys[:w.open[top].first], w.open[:top]
		case ',':
			top := &w.open[len(w.open)-1]
			top.wantsKey = top.isObject
		}
	}
	return nil
}

// key records a key of the innermost object.
func (w *walk) key(top *scope, quoted []byte) error {
	top.wantsKey = false
	key := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		var plain string
		if err := json.Unmarshal(quoted, &plain); err != nil {
			return fmt.Errorf("JSON: %w", err)
		}
		key = []byte(plain)
	}
	own := w.keys[top.first:]
	twice := top.many[string(key)]
	for _, other := range own[:min(len(own), fewKeys)] {
		twice = twice || bytes.Equal(other, key)
	}
	switch {
	case twice:
		return fmt.Errorf("JSON: key %q is there twice", shorten(string(key)))
	case len(own) < fewKeys:
		w.keys = append(w.keys, key)
		return nil
	case top.many == nil:
		top.many = map[string]bool{}
	case len(top.many) >= MaxMembers-fewKeys:
		return fmt.Errorf("JSON: an object has more than %d members", MaxMembers)
	}
	top.many[string(key)] = true
	return nil
}

// stringEnd returns where the string that begins at i ends, its quotes included.
func stringEnd(b []byte, i int) int {
	for j := i + 1; ; {
		quote := bytes.IndexByte(b[j:], '"')
		if quote < 0 {
			return len(b)
		}
		j += quote + 1
		escapes := 0
		for b[j-2-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return j
		}
	}
}

// valueEnd returns where the value that begins at i ends.
func valueEnd(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			i = stringEnd(b, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// isBetween reports whether c is white space of JSON, or a colon or comma between
// values.
func isBetween(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':'
}

// next returns where the next value begins, and whether there is one before the
// end of the object or array.
func next(b []byte, i int) (int, bool) {
	for i < len(b) && isBetween(b[i]) {
		i++
	}
	return i, i < len(b) && b[i] != '}' && b[i] != ']'
}

// fields returns the members of a JSON object, which CheckJSON has accepted, by their exact
// names; they are parts of b, not copies. Go's decoder would also accept "Subject" for "subject",
// which other parsers do not: such a near miss is refused.
func fields(b []byte, names ...string) (map[string]json.RawMessage, error) {
	b = bytes.TrimSpace(b)
	if len(b) == 0 || b[0] != '{' {
		return nil, fmt.Errorf("want a JSON object, got %s", shorten(string(b[:min(len(b), 200)])))
	}
	members := map[string]json.RawMessage{}
	for i, more := next(b, 1); more; i, more = next(b, i) {
		end := stringEnd(b, i)
		var key string
		if err := json.Unmarshal(b[i:end], &key); err != nil {
			return nil, fmt.Errorf("JSON: %w", err)
		}
		start, ok := next(b, end)
		if !ok {
			return nil, errors.New("JSON: a member has no value")
		}
		i = valueEnd(b, start)
		members[key] = bytes.TrimSpace(b[start:i])
		for _, name := range names {
			if key != name && strings.EqualFold(key, name) {
				return nil, fmt.Errorf("field %q%s", shorten(key), spelling.DidYouMean(strconv.Quote(name)))
			}
		}
	}
	return members, nil
}

// elements returns the elements of an array member, which may be absent or null; they are parts
// of it. Beyond most, the rest counts as one element.
func elements(members map[string]json.RawMessage, name string, most int) ([]json.RawMessage, error) {
	raw, ok := members[name]
	if !ok || string(raw) == "null" {
		return nil, nil
	}
	if len(raw) == 0 || raw[0] != '[' {
		return nil, fmt.Errorf("field %q: want an array", name)
	}
	var list []json.RawMessage
	for i, more := next(raw, 1); more && len(list) <= most; i, more = next(raw, i) {
		start := i
		i = valueEnd(raw, start)
		list = append(list, bytes.TrimSpace(raw[start:i]))
	}
	return list, nil
}

// decode decodes one member; one that is absent or null leaves v unchanged.
func decode(members map[string]json.RawMessage, name string, v any) error {
	raw, ok := members[name]
	if !ok {
		return nil
	}
	if part, ok := v.(*json.RawMessage); ok {
		*part = raw
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("field %q: %w", name, strictjson.Readable(err))
	}
	return nil
}

// shorten keeps untrusted text in a message readable.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
