package workload

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// node is one value of a JSON text. Nodes stand in the order of the text: what an
// object or list holds follows it, up to next.
type node struct {
	// name is the member's, of an object's members; value is the whole value. Both
	// are without quotes.
	name, value span
	// next is the first node behind it and all that it holds.
	next uint32
	kind jsontext.Kind
	// escapedName and escapedText say that there are escapes in them.
	escapedName, escapedText bool
}

// span is a part of a text, which is not longer than MaxInput.
type span struct{ from, to uint32 }

func (s span) of(text string) string { return text[s.from:s.to] }

const (
	// maxReserved is how many nodes there is room for before any is read: twice
	// what large Pods have. Commas in texts count as well.
	maxReserved = 2048
	// maxCompared is up to how many members of an object are compared with each
	// other; more are counted in a map.
	maxCompared = 16
	// plainNumber is up to which length a number without an exponent is in range
	// whatever it is, in bytes.
	plainNumber = 300
)

// indexer finds the values of one JSON value whose grammar has been checked, so
// that it need not look what comes, but where it ends.
type indexer struct {
	text string
	at   int
	// escape is where the next backslash is; the last one read where at is past it.
	escape int
	nodes  []node
}

// index returns the values of a text. It refuses what its grammar does not: names
// that stand twice, numbers that are out of range, and depth.
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

// value reads one value, which is nested depth deep, and has a name where it is a
// member.
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

// holder reads what the object or list at a node holds.
func (x *indexer) holder(at, depth int) error {
	if x.nodes[at].kind == jsontext.KindBeginObject {
		return x.members(at, depth)
	}
	return x.elements(depth)
}

// since returns what has been read.
func (x *indexer) since(from int) span { return span{uint32(from), uint32(x.at)} }

// number reads a number, and refuses one that no float64 comes near.
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

// members reads those of the object at a node.
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

// compareNames refuses names that stand twice, of an object that is at its end.
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
		if seen[name] = struct{}{}; len(seen) == before {
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

// quoted reads a text, and says whether it has escapes.
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

// textIn returns the text that the value is.
func (n *node) textIn(text string) string {
	if n.escapedText {
		return unquote(text, n.value)
	}
	return n.value.of(text)
}

// unquote returns a text with escapes, whose grammar has been checked.
func unquote(text string, inside span) string {
	unquoted, _ := jsontext.AppendUnquote(nil, text[inside.from-1:inside.to+1])
	return string(unquoted)
}
