package workload

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Position is a place in a file.
type Position struct {
	// File is what the file was called when it was read.
	File string `json:"file"`
	// Line and Column begin at 1; a column is a character (a Unicode code point), and
	// lines end where editors end them: at \n or \r\n.
	Line   int `json:"line"`
	Column int `json:"column"`
}

// String returns file:line:column.
func (p Position) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// origin is where an object was read.
type origin struct {
	where string // for messages
	// text has the object, at the names that lead to it; nil where nobody kept it.
	text *written
	at   []string
}

// written is one document as it was written, which its objects share.
type written struct {
	file string
	text string
	// line and column are where text begins, from 1.
	line, column int
	isYAML       bool
	// template is what made it, in the words of the one who ran it.
	template string

	once  sync.Once
	marks []mark // of YAML
	nodes []node // of JSON
}

// Position returns where the value at a JSON pointer (RFC 6901) is written: its first
// character, a quote or the sign of a block included, and past an anchor or a tag. What
// is written once and used at several places by an alias or a merge is where its text
// stands. The empty pointer is the object itself.
//
// It is false where no value is, where a patch has put another text than was written,
// and for an object that was not read by Read or ReadDocuments. The first call reads the document's places, which is as much work as
// reading it was; objects that nobody asks about cost nothing.
func (o Object) Position(pointer string) (Position, bool) {
	if o.document == nil || o.origin == nil || o.origin.text == nil {
		return Position{}, false
	}
	names, err := parsePointer(pointer)
	if err != nil {
		return Position{}, false
	}
	want, ok := o.Root().below(names)
	if !ok {
		return Position{}, false
	}
	path := make([]string, 0, len(o.origin.at)+len(names))
	return o.origin.text.position(append(append(path, o.origin.at...), names...), want)
}

// Template returns what the manifest was rendered from, as its first comment says it
// ("# Source: chart/templates/web.yaml", of helm template); empty where none does. It
// is the word of whoever made the manifest.
func (o Object) Template() string {
	if o.document == nil || o.origin == nil || o.origin.text == nil {
		return ""
	}
	return o.origin.text.template
}

// below follows names through objects and lists.
func (v Value) below(names []string) (Value, bool) {
	for _, name := range names {
		switch {
		case v.IsObject():
			v = v.Member(name)
		case v.IsList():
			i, ok := position(name, v.count())
			if !ok {
				return Value{}, false
			}
			for n, element := range v.Elements() {
				if n == i {
					v = element
					break
				}
			}
		default:
			return Value{}, false
		}
		if v.in == nil {
			return Value{}, false
		}
	}
	return v, true
}

// position returns where the value at a path is written.
func (w *written) position(path []string, want Value) (Position, bool) {
	w.once.Do(func() {
		if w.isYAML {
			w.marks = readMarks(w.text)
		} else if nodes, err := index(w.text); err == nil {
			w.nodes = nodes
		}
	})
	if w.isYAML {
		found, ok := find(w.marks, path, want)
		if !ok {
			return Position{}, false
		}
		return w.place(pastProperties(w.text, offset(w.text, found))), true
	}
	if len(w.nodes) == 0 {
		return Position{}, false
	}
	found, ok := Object{&document{text: w.text, nodes: w.nodes}}.Root().below(path)
	if !ok || want.IsText() && want.Text() != found.Text() {
		return Position{}, false
	}
	from := int(found.node().value.from)
	if found.IsText() {
		from-- // the quote
	}
	return w.place(from), true
}

// place makes a position of an offset.
func (w *written) place(at int) Position {
	before := w.text[:at]
	p := Position{File: w.file, Line: w.line + strings.Count(before, "\n"), Column: w.column}
	if newline := strings.LastIndexByte(before, '\n'); newline >= 0 {
		before, p.Column = before[newline+1:], 1
	}
	p.Column += utf8.RuneCountInString(before)
	return p
}

// templateMark begins the comment by which helm says what it rendered.
const templateMark = "# Source: "

// templateOf returns what the comments before the first value say that the document
// was rendered from.
func templateOf(document []byte) string {
	for line := range bytes.Lines(document) {
		line = bytes.TrimSpace(line)
		if name, ok := bytes.CutPrefix(line, []byte(templateMark)); ok {
			return string(name[:min(len(name), maxTemplate)])
		}
		if len(line) > 0 && line[0] != '#' && !bytes.HasPrefix(line, []byte("---")) {
			return ""
		}
	}
	return ""
}
