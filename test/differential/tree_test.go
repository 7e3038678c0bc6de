package differential

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// node is JSON that keeps the order of its members, and members of one name.
type node struct {
	name     string // of a member
	scalar   string // JSON text of a string, number, true, false or null
	opening  byte   // '{' or '['; 0 for a scalar
	children []*node
}

// parse reads one JSON value, and nothing after it.
func parse(text []byte) (*node, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	n, err := read(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one value")
	}
	return n, nil
}

func read(d *json.Decoder) (*node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	opening, isDelim := token.(json.Delim)
	if !isDelim {
		return &node{scalar: scalarOf(token)}, nil
	}
	n := &node{opening: byte(opening)}
	for d.More() {
		name := ""
		if n.opening == '{' {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name = key.(string)
		}
		child, err := read(d)
		if err != nil {
			return nil, err
		}
		child.name = name
		n.children = append(n.children, child)
	}
	_, err = d.Token() // the closing one
	return n, err
}

// scalarOf writes a value as encoding/json does without HTML in mind, which is how
// signed documents are written.
func scalarOf(value any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		panic(err) // not of what a decoder gave
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// write appends the JSON text.
func (n *node) write(b *bytes.Buffer) {
	if n.opening == 0 {
		b.WriteString(n.scalar)
		return
	}
	b.WriteByte(n.opening)
	for i, child := range n.children {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.opening == '{' {
			b.WriteString(scalarOf(child.name))
			b.WriteByte(':')
		}
		child.write(b)
	}
	b.WriteByte(n.opening + 2) // in ASCII, { and } and [ and ] are two apart
}

func (n *node) text() []byte {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

// str returns a string's value.
func (n *node) str() (string, bool) {
	var s string
	if n.opening != 0 || !strings.HasPrefix(n.scalar, `"`) {
		return "", false
	}
	err := json.Unmarshal([]byte(n.scalar), &s)
	return s, err == nil
}

func (n *node) setString(s string) { n.scalar = scalarOf(s) }

// member returns a member of an object, or an element of a list by its number.
func (n *node) member(name string) *node {
	for i, child := range n.children {
		if n.opening == '{' && child.name == name || n.opening == '[' && name == string(rune('0'+i)) {
			return child
		}
	}
	return nil
}

// at follows a path of names, separated by dots; nil if it leads nowhere.
func (n *node) at(path string) *node {
	for part := range strings.SplitSeq(path, ".") {
		if n == nil || part == "" {
			return n
		}
		n = n.member(part)
	}
	return n
}

// paths lists every place below n that holds something.
func (n *node) paths(prefix string) []string {
	var all []string
	for i, child := range n.children {
		name := child.name
		if n.opening == '[' {
			name = string(rune('0' + i))
		}
		if strings.Contains(name, ".") || i > 9 {
			continue // has no path of this form
		}
		path := strings.TrimPrefix(prefix+"."+name, ".")
		all = append(append(all, path), child.paths(path)...)
	}
	return all
}

func (n *node) clone() *node {
	c := *n
	c.children = slices.Clone(n.children)
	for i, child := range c.children {
		c.children[i] = child.clone()
	}
	return &c
}

// become makes n what other is, under n's own name.
func (n *node) become(other *node) {
	name := n.name
	*n = *other.clone()
	n.name = name
}

// parent returns what holds the node at a path, and the node's place in it.
func (n *node) parent(path string) (*node, int) {
	above, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		above, name = path[:i], path[i+1:]
	}
	p := n.at(above)
	if p == nil {
		return nil, 0
	}
	return p, slices.Index(p.children, p.member(name))
}
