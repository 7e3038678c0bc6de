package workload

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// node is one value of a JSON text. Nodes are in the order of the text: the content of an object
// or list follows it, up to next.
type node struct {
	// name is the name of an object's member; value is the whole value. Both are without quotes.
	name, value span
	// next is the first node after it and its content.
	next uint32
	kind jsontext.Kind
	// escapedName and escapedText report escapes in them.
	escapedName, escapedText bool
}

// span is a part of a text, which is not longer than MaxInput.
type span struct{ from, to uint32 }

func (s span) of(text string) string { return text[s.from:s.to] }

const (
	// maxReserved is the initial capacity in nodes: twice the number in large Pods. The estimate
	// counts commas in texts as well.
	maxReserved = 2048
	// maxCompared is the number of members of an object up to which names are compared directly;
	// more are counted in a map.
	maxCompared = 16
	// plainNumber is the length in bytes up to which a number without an exponent is always in
	// range.
	plainNumber = 300
)

// indexer finds the values of one JSON value with a checked grammar, so it only searches for the
// end of each value.
type indexer struct {
	text string
	at   int
	// escape is the position of the next backslash; it is stale once at is beyond it.
	escape int
	nodes  []node
}

// index returns the values of a text. It refuses repeated names, numbers out of range, and
// nesting that is too deep, which the grammar permits.
func index(text string) ([]node, error) {
	room := 1 + strings.Count(text, ",") + strings.Count(text, "{") + strings.Count(text, "[")
	x := indexer{text: text, escape: -1, nodes: make([]node, 0, min(room, maxReserved))}
	if err := x.value(0, span{}, false); err != nil {
		return nil, err
	}
	return x.nodes, nil
}

// peek returns the first byte of the next token, past separators.
func (x *indexer) peek() byte {
	for ; ; x.at++ {
		switch c := x.text[x.at]; c {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return c
		}
	}
}

// value parses one value at a nesting depth, with a name if it is a member.
func (x *indexer) value(depth int, name span, escapedName bool) error {
	if depth > MaxDepth {
		return fmt.Errorf("nested more than %d deep (MaxDepth)", MaxDepth)
	}
	first := x.peek()
	at, from, kind := len(x.nodes), x.at, jsontext.Kind(first)
	var (
		text    span
		escaped bool
	)
	switch first {
	case '{', '[':
		x.nodes = append(x.nodes, node{name: name, kind: kind, escapedName: escapedName})
		if err := x.holder(at, depth); err != nil {
			return err
		}
		x.nodes[at].value, x.nodes[at].next = x.since(from), uint32(len(x.nodes))
		return nil
	case '"':
		text, escaped = x.quoted()
	case 't', 'n':
		x.at += len("true")
		text = x.since(from)
	case 'f':
		x.at += len("false")
		text = x.since(from)
	default:
		if err := x.number(); err != nil {
			return err
		}
		kind, text = jsontext.KindNumber, x.since(from)
	}
	x.nodes = append(x.nodes, node{
		name: name, value: text, next: uint32(at) + 1, kind: kind, escapedName: escapedName, escapedText: escaped,
	})
	return nil
}

// holder parses the content of the object or list at a node.
func (x *indexer) holder(at, depth int) error {
	if x.nodes[at].kind == jsontext.KindBeginObject {
		return x.members(at, depth)
	}
	return x.elements(depth)
}

// since returns the span since from.
func (x *indexer) since(from int) span { return span{uint32(from), uint32(x.at)} }

// number parses a number, and refuses one outside the range of float64.
func (x *indexer) number() error {
	from := x.at
	for x.at < len(x.text) && strings.IndexByte("+-.0123456789Ee", x.text[x.at]) >= 0 {
		x.at++
	}
	number := x.text[from:x.at]
	if len(number) <= plainNumber && !strings.ContainsAny(number, "eE") {
		return nil
	}
	_, err := strconv.ParseFloat(number, 64)
	return err
}

// members parses the members of the object at a node.
func (x *indexer) members(of, depth int) error {
	x.at++
	count, escaped := 0, false
	for x.peek() != '}' {
		name, escapedName := x.quoted()
		if err := x.value(depth+1, name, escapedName); err != nil {
			return err
		}
		count, escaped = count+1, escaped || escapedName
	}
	x.at++
	if count > maxCompared || escaped && count > 1 {
		return x.countNames(of, count)
	}
	return x.compareNames(of)
}

// compareNames refuses repeated names in a complete object.
func (x *indexer) compareNames(of int) error {
	first, end := uint32(of)+1, uint32(len(x.nodes))
	for at := first; at < end; at = x.nodes[at].next {
		name := x.nodes[at].name.of(x.text)
		for before := first; before < at; before = x.nodes[before].next {
			other := x.nodes[before].name
			if int(other.to-other.from) == len(name) && other.of(x.text) == name {
				return twice(name)
			}
		}
	}
	return nil
}

// countNames is compareNames for many names, or names with escapes.
func (x *indexer) countNames(of, count int) error {
	seen := make(map[string]struct{}, count)
	for at := uint32(of) + 1; at < uint32(len(x.nodes)); at = x.nodes[at].next {
		name := x.nodes[at].nameIn(x.text)
		before := len(seen)
		seen[name] = struct{}{}
		if len(seen) == before {
			return twice(name)
		}
	}
	return nil
}

func twice(name string) error { return fmt.Errorf("the name %q stands twice in one object", name) }

func (x *indexer) elements(depth int) error {
	x.at++
	for x.peek() != ']' {
		if err := x.value(depth+1, span{}, false); err != nil {
			return err
		}
	}
	x.at++
	return nil
}

// quoted parses a text, and reports whether it has escapes.
func (x *indexer) quoted() (span, bool) {
	x.at++
	from := x.at
	end := from + strings.IndexByte(x.text[from:], '"')
	if x.escape < from {
		x.escape = len(x.text)
		if i := strings.IndexByte(x.text[from:], '\\'); i >= 0 {
			x.escape = from + i
		}
	}
	if end < x.escape {
		x.at = end + 1
		return span{uint32(from), uint32(end)}, false
	}
	for end = from; x.text[end] != '"'; end++ {
		if x.text[end] == '\\' {
			end++
		}
	}
	x.at = end + 1
	return span{uint32(from), uint32(end)}, true
}

// nameIn returns the member's name.
func (n *node) nameIn(text string) string {
	if n.escapedName {
		return unquote(text, n.name)
	}
	return n.name.of(text)
}

// textIn returns the value as text.
func (n *node) textIn(text string) string {
	if n.escapedText {
		return unquote(text, n.value)
	}
	return n.value.of(text)
}

// unquote decodes a text with escapes and a checked grammar.
func unquote(text string, inside span) string {
	unquoted, _ := jsontext.AppendUnquote(nil, text[inside.from-1:inside.to+1])
	return string(unquoted)
}
