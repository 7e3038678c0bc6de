// Package yamltemplate parses a YAML text with {{ variables }} in it, quoted or not.
//
// Kyverno substitutes variables in such a text and then parses it. This package parses it
// once, with the variables as placeholders, so that a value never becomes structure.
package yamltemplate

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/jsonvalue"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// maxScalar bounds a plain scalar that may be something else than a string, in
// bytes: no number of JSON is as long.
const maxScalar = 64

// Document is a parsed text. In its scalars a mark replaces each variable; the mark holds
// the variable's index.
type Document struct {
	// Root is made of lists, objects and scalars, which Value, Text and Constant
	// read. Keys of objects have their variables in them.
	Root any

	engine    *jmespath.Engine
	mark      string // occurs nowhere in the text
	variables []string
}

// Node is a value with variables, compiled.
type Node interface {
	Value(data variable.Context) (any, error)
}

// scalar is a scalar of the text, with marks.
type scalar struct {
	text  string
	plain bool // neither quoted nor a block
}

// Read reads a text. Errors are *variable.CompileError.
func Read(engine *jmespath.Engine, text string) (*Document, error) {
	if len(text) > jsonvalue.MaxText {
		return nil, wrong("", "a text of %d bytes: %w of %d", len(text), jsonvalue.ErrTooLarge, jsonvalue.MaxText)
	}
	d := &Document{engine: engine, mark: "variable"}
	for i := 0; strings.Contains(text, d.mark); i++ {
		d.mark = "variable" + strconv.Itoa(i) + "x"
	}
	marked, err := d.replace(text)
	if err != nil {
		return nil, &variable.CompileError{Err: err}
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(strings.NewReader(marked))
	if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
		return nil, wrong("", "want a list of operations, found nothing")
	} else if err != nil {
		return nil, wrong("", "is no YAML: %w", err)
	}
	if decoder.Decode(&yaml.Node{}) == nil {
		return nil, wrong("", "want one document, found several")
	}
	d.Root, err = d.read(document.Content[0], "", 0)
	return d, err
}

// replace puts a mark for each variable, and for each `\{{`.
func (d *Document) replace(text string) (string, error) {
	var out strings.Builder
	for {
		start := strings.Index(text, "{{")
		if start < 0 {
			rest, err := Unescape(text)
			out.WriteString(rest)
			return out.String(), err
		}
		end := start + 2
		if start > 0 && text[start-1] == '\\' {
			start--
		} else {
			end = closing(text, start)
			if end < 0 {
				return "", errors.New("a variable is opened by {{ and not closed by }}: close it, or write \\{{ for plain text")
			}
		}
		before, err := Unescape(text[:start])
		if err != nil {
			return "", err
		}
		out.WriteString(before)
		out.WriteString(d.mark + "_" + strconv.Itoa(len(d.variables)) + "_")
		d.variables = append(d.variables, text[start:end])
		text = text[end:]
	}
}

// closing returns the end of a variable that starts at start, or -1. It counts
// braces as package variable does.
func closing(text string, start int) int {
	open, braces := 0, []int{0}
	for i := start; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "{{"):
			open++
			braces = append(braces, 0)
			i += 2
		case text[i] == '{':
			braces[open]++
			i++
		case text[i] == '}' && braces[open] > 0:
			braces[open]--
			i++
		case strings.HasPrefix(text[i:], "}}"):
			braces = braces[:open]
			i += 2
			open--
			if open == 0 {
				return i
			}
		default:
			i++
		}
	}
	return -1
}

// restore gives a text its variables back.
func (d *Document) restore(text string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, d.mark+"_")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		number, rest, _ := strings.Cut(after, "_")
		index, err := strconv.Atoi(number)
		if err != nil || index < 0 || index >= len(d.variables) {
			out.WriteString(d.mark + "_") // spelled by an escape of YAML
			text = after
			continue
		}
		out.WriteString(d.variables[index])
		text = rest
	}
}

func (d *Document) marked(s string) bool { return strings.Contains(s, d.mark) }

// read converts YAML to JSON with scalars in place of strings; keys have their variables
// again.
func (d *Document) read(n *yaml.Node, at string, depth int) (any, error) {
	if depth > jsonvalue.MaxDepth {
		return nil, wrong(at, "nesting %w of %d", jsonvalue.ErrTooLarge, jsonvalue.MaxDepth)
	}
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			value, err := d.read(item, at+"/"+strconv.Itoa(i), depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case yaml.MappingNode:
		return d.readObject(n, at, depth)
	case yaml.ScalarNode:
		return scalar{text: n.Value, plain: n.Style == 0}, nil
	}
	return nil, wrong(at, "an alias of YAML: write out its content")
}

func (d *Document) readObject(n *yaml.Node, at string, depth int) (any, error) {
	object := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return nil, wrong(at, "a key is a list, an object or an alias: want a string")
		}
		name := d.restore(key.Value)
		place := at + "/" + jsonvalue.Escape(name)
		if _, twice := object[name]; twice {
			return nil, wrong(place, "is there twice")
		}
		value, err := d.read(n.Content[i+1], place, depth+1)
		if err != nil {
			return nil, err
		}
		object[name] = value
	}
	return object, nil
}

// Constant reads a scalar that must not have variables; want describes it.
func (d *Document) Constant(raw any, at, want string) (string, error) {
	s, ok := raw.(scalar)
	if !ok {
		return "", wrong(at, "want %s, found %s", want, jsonvalue.KindOf(raw))
	}
	if d.marked(s.text) {
		return "", &variable.CompileError{Path: at, Err: errVariable}
	}
	return s.text, nil
}

// Text compiles a scalar as text, whatever its style.
func (d *Document) Text(raw any, at string) (*variable.Template, error) {
	s, ok := raw.(scalar)
	if !ok {
		return nil, wrong(at, "want a JSON pointer, found %s", jsonvalue.KindOf(raw))
	}
	return variable.CompileAt(d.engine, d.restore(s.text), at)
}

// Value compiles a part of the document. Errors are *variable.CompileError.
func (d *Document) Value(raw any, at string) (Node, error) {
	switch v := raw.(type) {
	case scalar:
		return d.scalar(v, at)
	case []any:
		return d.list(v, at)
	case map[string]any:
		return d.object(v, at)
	}
	return nil, wrong(at, "want a value, found %s", jsonvalue.KindOf(raw))
}

func (d *Document) scalar(s scalar, at string) (Node, error) {
	if !d.marked(s.text) {
		if s.plain {
			return fixed{plainScalar(s.text)}, nil
		}
		return fixed{s.text}, nil
	}
	template, err := variable.CompileAt(d.engine, d.restore(s.text), at)
	if err != nil {
		return nil, err
	}
	return scalarNode{template: template, plain: s.plain}, nil
}

func (d *Document) list(items []any, at string) (Node, error) {
	nodes, constant := make(listNode, len(items)), true
	for i, item := range items {
		n, err := d.Value(item, at+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		_, same := n.(fixed)
		nodes[i], constant = n, constant && same
	}
	return fold(nodes, constant)
}

func (d *Document) object(members map[string]any, at string) (Node, error) {
	var nodes objectNode
	constant := true
	for _, key := range slices.Sorted(maps.Keys(members)) {
		place := at + "/" + jsonvalue.Escape(key)
		name, err := variable.CompileAt(d.engine, key, place)
		if err != nil {
			return nil, err
		}
		n, err := d.Value(members[key], place)
		if err != nil {
			return nil, err
		}
		_, same := n.(fixed)
		constant = constant && same && name.Plain()
		nodes = append(nodes, memberNode{key: name, value: n, at: place})
	}
	return fold(nodes, constant)
}

// fold evaluates constant nodes.
func fold(n Node, constant bool) (Node, error) {
	if !constant {
		return n, nil
	}
	value, err := n.Value(nil)
	return fixed{value}, err
}

type fixed struct{ is any }

func (f fixed) Value(variable.Context) (any, error) { return f.is, nil }

// scalarNode is a scalar with variables.
type scalarNode struct {
	template *variable.Template
	plain    bool
}

func (s scalarNode) Value(data variable.Context) (any, error) {
	value, err := s.template.Execute(data)
	if err != nil {
		return nil, err
	}
	text, ok := value.(string)
	switch {
	case !s.plain:
		return jmespath.Text(value), nil
	case ok:
		return plainScalar(text), nil
	}
	return value, nil
}

type listNode []Node

func (l listNode) Value(data variable.Context) (any, error) {
	result := make([]any, len(l))
	for i, n := range l {
		value, err := n.Value(data)
		if err != nil {
			return nil, err
		}
		result[i] = value
	}
	return result, nil
}

type objectNode []memberNode

type memberNode struct {
	key   *variable.Template
	value Node
	at    string
}

func (o objectNode) Value(data variable.Context) (any, error) {
	result := make(map[string]any, len(o))
	for _, m := range o {
		name, err := m.key.Execute(data)
		if err != nil {
			return nil, err
		}
		key := jmespath.Text(name)
		if _, twice := result[key]; twice {
			return nil, fmt.Errorf("%s: the key %q is there twice", m.at, key)
		}
		result[key], err = m.value.Value(data)
		if err != nil {
			return nil, err
		}
	}
	return result, nil
}

// plainScalar reads a plain scalar as YAML 1.1 does, as Kyverno's library reads it: yes is
// true, 0x10 is 16, and anything but null, number and bool is a string.
func plainScalar(s string) any {
	const scalarLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._~"
	trimmed := strings.TrimSpace(s)
	if len(trimmed) > maxScalar || strings.Trim(trimmed, scalarLetters) != "" || strings.HasPrefix(trimmed, "---") || trimmed == "-" {
		return s
	}
	var value any
	if err := sigsyaml.Unmarshal([]byte(trimmed), &value); err != nil {
		return s
	}
	switch v := value.(type) {
	case string:
		return s
	case nil, bool, float64:
		return v
	}
	return s
}

func wrong(at, format string, args ...any) error {
	return &variable.CompileError{Path: at, Err: fmt.Errorf(format, args...)}
}

var errVariable = errors.New("a variable cannot stand here: it would be structure, and values are data")
