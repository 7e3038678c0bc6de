// Package comment carries comments of YAML (1.2) from a document to another one that says the same in other fields.
package comment

import (
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Comment is a comment, and the path of the value that it stands before, beside or behind.
type Comment struct {
	Path []string
	// Text has lines that begin with #.
	Text string
}

// Read returns the comments of a document in their order. A text that is no YAML has none, and those of a value stand
// where it is written, not where an alias repeats it.
func Read(text string) []Comment {
	var document yaml.Node
	if !strings.Contains(text, "#") || yaml.Unmarshal([]byte(text), &document) != nil {
		return nil
	}
	var r reader
	r.read(&document, nil)
	return r.found
}

type reader struct{ found []Comment }

func (r *reader) read(node *yaml.Node, path []string) {
	r.add(path, node.HeadComment)
	switch node.Kind {
	case yaml.DocumentNode:
		for _, child := range node.Content {
			r.read(child, path)
		}
	case yaml.MappingNode:
		r.add(path, node.LineComment)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			below := append(path[:len(path):len(path)], key.Value)
			r.add(below, key.HeadComment)
			r.add(below, key.LineComment)
			r.read(node.Content[i+1], below)
			r.add(below, key.FootComment)
		}
	case yaml.SequenceNode:
		r.add(path, node.LineComment)
		for i, child := range node.Content {
			r.read(child, append(path[:len(path):len(path)], strconv.Itoa(i)))
		}
	default:
		r.add(path, node.LineComment)
	}
	r.add(path, node.FootComment)
}

func (r *reader) add(path []string, text string) {
	if text != "" {
		r.found = append(r.found, Comment{path, text})
	}
}

// Put writes a comment before the value at a path, behind those that stand there. It reports false, and writes nothing,
// where there is no such value.
func Put(root *yaml.Node, path []string, text string) bool {
	value, remarked := root, root
	for _, name := range path {
		value, remarked = child(value, name)
		if value == nil {
			return false
		}
	}
	text = lines(text)
	if remarked.HeadComment != "" {
		text = remarked.HeadComment + "\n" + text
	}
	remarked.HeadComment = text
	return true
}

// child returns a value in an object or list, and the node that its comments are written at; nil if there is none.
func child(node *yaml.Node, name string) (value, remarked *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i+1], node.Content[i]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i]
		}
	}
	return nil, nil
}

// lines is a text of which each line is a comment, whatever a reader takes for the end of a line.
func lines(text string) string {
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.Map(func(r rune) rune {
			if r == '\t' || unicode.IsPrint(r) {
				return r
			}
			return '?'
		}, strings.TrimSpace(line))
		switch {
		case line == "":
		case line[0] != '#':
			kept = append(kept, "# "+line)
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}
