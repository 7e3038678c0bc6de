package yamldocument

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
	k8syaml "sigs.k8s.io/yaml"
)

// Bounds of a document.
const (
	// MaxSize is the size in bytes; parsing takes some fifty times as much memory.
	MaxSize = 16 << 20
	// MaxExpanded is the size with expanded aliases, in bytes, so that a few lines cannot become
	// gigabytes.
	MaxExpanded = 128 << 20
	// MaxDepth is the depth of nesting. Custom resource definitions, the deepest common objects,
	// reach about sixty.
	MaxDepth = 256
)

// ToJSON converts one document; an empty one is null. It refuses documents that exceed the bounds
// with expanded aliases, or that parsers read differently.
func ToJSON(document []byte) ([]byte, error) {
	overrides, err := check(document)
	if err != nil {
		return nil, fmt.Errorf("YAML: %w", err)
	}
	if overrides { // which a strict conversion takes for a key that is set twice
		return k8syaml.YAMLToJSON(document)
	}
	return k8syaml.YAMLToJSONStrict(document)
}

// check reports whether a key is set again that a merge brings.
func check(document []byte) (overrides bool, err error) {
	if len(document) > MaxSize {
		return false, fmt.Errorf("the document has more than %d bytes (MaxYAML); write it as JSON, or split it", MaxSize)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(document))
	var root yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var next yaml.Node
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return false, errors.New("another document follows without a line of ---")
	}
	walk := walk{seen: map[*yaml.Node]extent{}}
	_, err = walk.measure(&root, 0)
	return walk.overrides, err
}

// walk measures a document with expanded aliases.
type walk struct {
	seen map[*yaml.Node]extent
	// overrides: a mapping sets a key again that a merge brings.
	overrides bool
}

// extent is the size of a node with its content.
type extent struct {
	size   int64 // in bytes
	height int
}

// unfinished marks a node that is being measured.
const unfinished = -1

// nodeSize is the cost of a node in addition to its text.
const nodeSize = 8

func (w *walk) measure(n *yaml.Node, depth int) (extent, error) {
	known, seen := w.seen[n]
	switch {
	case seen && known.size == unfinished:
		return extent{}, fmt.Errorf("line %d: an anchor contains itself", n.Line)
	case depth+known.height > MaxDepth:
		return extent{}, fmt.Errorf("line %d: nested more than %d deep (MaxDepth)", n.Line, MaxDepth)
	case seen:
		return known, nil
	case n.Kind == yaml.AliasNode:
		return w.measure(n.Alias, depth)
	}
	w.seen[n] = extent{size: unfinished}
	if n.Kind == yaml.MappingNode {
		if err := checkKeys(n); err != nil {
			return extent{}, err
		}
	}
	total := extent{size: int64(len(n.Value)) + nodeSize}
	for _, child := range n.Content {
		part, err := w.measure(child, depth+1)
		if err != nil {
			return extent{}, err
		}
		total.height = max(total.height, part.height+1)
		total.size += part.size
		if total.size > MaxExpanded {
			return extent{}, fmt.Errorf("line %d: more than %d bytes once aliases are written out (MaxExpanded)", n.Line, MaxExpanded)
		}
	}
	if n.Kind == yaml.MappingNode {
		overrides, err := checkMerges(n) // which was measured, and so contains no cycle
		if err != nil {
			return extent{}, err
		}
		w.overrides = w.overrides || overrides
	}
	w.seen[n] = total
	return total, nil
}

// checkKeys refuses keys that are equal in JSON, as 1 and "1".
func checkKeys(n *yaml.Node) error {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key must be a plain value", n.Content[i].Line)
		}
		if line, twice := seen[key.Value]; twice {
			return fmt.Errorf("line %d: key %q is already set in line %d", n.Content[i].Line, key.Value, line)
		}
		seen[key.Value] = n.Content[i].Line
	}
	return nil
}
