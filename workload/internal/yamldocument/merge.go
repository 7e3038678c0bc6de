package yamldocument

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checkMerges reports whether a mapping sets a key again that a merge brings. A merge after such a key
// is an error: which of them counts depends on the parser. The mapping must not contain itself.
func checkMerges(mapping *yaml.Node) (overrides bool, err error) {
	for i := 0; i < len(mapping.Content); i += 2 {
		if !isMerge(mapping.Content[i]) {
			continue
		}
		keys := brought{}
		keys.add(mapping.Content[i+1])
		for k := 0; k < len(mapping.Content); k += 2 {
			key := mapping.Content[k]
			_, again := keys[NameOf(key)]
			if again && k < i {
				return false, fmt.Errorf("line %d: << brings the key %q, which is set before it in line %d: write << first, and what differs after it",
					mapping.Content[i].Line, NameOf(key), key.Line)
			}
			overrides = overrides || again && k > i
		}
		overrides = overrides || keys.areRepeated()
	}
	return overrides, nil
}

// brought has the keys that a merge brings, and how many mappings bring each.
type brought map[string]int

func (b brought) add(n *yaml.Node) {
	switch n.Kind {
	case yaml.AliasNode:
		b.add(n.Alias)
	case yaml.SequenceNode:
		for _, one := range n.Content {
			b.add(one)
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			if isMerge(n.Content[i]) {
				b.add(n.Content[i+1])
				continue
			}
			b[NameOf(n.Content[i])]++
		}
	}
}

func (b brought) areRepeated() bool {
	for _, times := range b {
		if times > 1 {
			return true
		}
	}
	return false
}

// isMerge reports whether a key merges: a text with a tag or in quotes is a name.
func isMerge(key *yaml.Node) bool { return key.Value == "<<" && key.ShortTag() == "!!merge" }

// NameOf returns the text of a key.
func NameOf(key *yaml.Node) string {
	if key.Kind == yaml.AliasNode && key.Alias != nil {
		return key.Alias.Value
	}
	return key.Value
}
