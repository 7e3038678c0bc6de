package library

import (
	"errors"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// checkAliases refuses YAML that grows out of proportion when its aliases are
// written out, before anything writes them out.
func checkAliases(text string) error {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return err
	}
	e := expansion{known: map[*yaml.Node]int{}}
	size, err := e.of(&root)
	if err != nil {
		return err
	}
	if size > maxDocument {
		return &limit.ExceededError{What: "the YAML with its aliases written out", Most: maxDocument}
	}
	return nil
}

// expansion measures nodes as they are when written out, each once.
type expansion struct{ known map[*yaml.Node]int }

// open marks a node that is being measured.
const open = -1

func (e expansion) of(n *yaml.Node) (int, error) {
	switch size, ok := e.known[n]; {
	case size == open:
		return 0, errors.New("a YAML alias is inside its own anchor")
	case ok:
		return size, nil
	}
	e.known[n] = open
	size := 1 + len(n.Value)
	parts := n.Content
	if n.Kind == yaml.AliasNode {
		parts = []*yaml.Node{n.Alias}
	}
	for _, part := range parts {
		more, err := e.of(part)
		if err != nil {
			return 0, err
		}
		size = min(size+more, maxDocument+1)
	}
	e.known[n] = size
	return size, nil
}
