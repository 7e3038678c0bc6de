package workload

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Position is a location in a file.
type Position struct {
	// File is the file's name as given to Read.
	File string `json:"file"`
	// Line and Column begin at 1; a column is a character (a Unicode code point), and lines end
	// as in editors: at \n or \r\n.
	Line   int `json:"line"`
	Column int `json:"column"`
}

// String returns file:line:column.
func (p Position) String() string {
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// origin is the location of an object.
type origin struct {
	where string // for messages
	// text contains the object, at the path at; nil if it was not kept.
	text *written
	at   []string
}

// written is one document as it was read, which its objects share.
type written struct {
	file string
	text string
	// line and column are the position of text, from 1.
	line, column int
	isYAML       bool
	// template is the template of the document, from an unverified comment.
	template string

	once  sync.Once
	marks []mark // of YAML
	nodes []node // of JSON
	paces []Position
}

// Position returns the position of the value at a JSON pointer (RFC 6901): its first character,
// including a quote or the indicator of a block, and after an anchor or a tag. For a value behind
// an alias or a merge, it is the position of the original text. The empty pointer is the object
// itself.
//
// It is false for an absent value, for a text that a patch has changed, and for an object that
// was not read by Read or ReadDocuments. The first call parses the document again; other objects
// have no cost.
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

// Template returns the template of the manifest from its first comment ("# Source:
// chart/templates/web.yaml", of helm template); empty without one. The comment is not verified.
func (o Object) Template() string {
	if o.document == nil || o.origin == nil || o.origin.text == nil {
		return ""
	}
	return o.origin.text.template
}

// YAML returns the document as it was written, with its comments; empty for JSON, for an object of a list, and for one
// that was not read by Read or ReadDocuments.
func (o Object) YAML() string {
	if o.document == nil || o.origin == nil || o.origin.text == nil || !o.origin.text.isYAML || len(o.origin.at) > 0 {
		return ""
	}
	return o.origin.text.text
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

// position returns the position of the value at a path.
func (w *written) position(path []string, want Value) (Position, bool) {
	w.once.Do(func() {
		for from, p := 0, (Position{w.file, w.line, w.column}); from <= len(w.text); from += pace {
			w.paces, p = append(w.paces, p), p.after(w.text[from:min(from+pace, len(w.text))])
		}
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

// pace is the distance of the stored positions of a text: in a line of megabytes, each position would cost its length.
const pace = 4096

// place converts an offset to a position.
func (w *written) place(at int) Position { return w.paces[at/pace].after(w.text[at/pace*pace : at]) }

// after returns the position behind a text, which may begin and end within a character.
func (p Position) after(text string) Position {
	p.Line += strings.Count(text, "\n")
	if newline := strings.LastIndexByte(text, '\n'); newline >= 0 {
		text, p.Column = text[newline+1:], 1
	}
	for i := range len(text) {
		if utf8.RuneStart(text[i]) {
			p.Column++
		}
	}
	return p
}

// templateMark begins helm's comment with the template's name.
const templateMark = "# Source: "

// templateOf returns the template's name from the comments before the first value.
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
