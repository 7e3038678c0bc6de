// Package document reads fields of decoded JSON (RFC 8259) by their paths: documents of scanners and
// generators, which statements contain.
package document

import (
	"encoding/json"
	"fmt"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// MaxBytes bounds a document, in bytes: those of large images have some megabytes.
	MaxBytes = 12 << 20
	// MaxEntries bounds the packages, findings or statements of one document.
	MaxEntries = 10_000
)

// Node is a value of a document. A value that is absent or of another type reads as empty.
type Node struct{ value any }

// Of returns a decoded document as a node: maps, lists, texts, numbers, booleans and nil.
func Of(value any) Node { return Node{value} }

// Decode decodes a document within MaxBytes. Documents of statements are checked for their depth before.
func Decode(raw []byte) (any, error) {
	if len(raw) > MaxBytes {
		return nil, &limit.ExceededError{What: "the document", Most: MaxBytes}
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, fmt.Errorf("document: %w", err)
	}
	return value, nil
}

// Value returns the decoded value.
func (n Node) Value() any { return n.value }

// Get returns the value at a path of members.
func (n Node) Get(path ...string) Node {
	for _, name := range path {
		object, _ := n.value.(map[string]any)
		n = Node{object[name]}
	}
	return n
}

// Has reports whether there is a value other than null.
func (n Node) Has() bool { return n.value != nil }

// Text returns a text; empty if it is none.
func (n Node) Text() string {
	text, _ := n.value.(string)
	return text
}

// Texts returns the texts of a list, without others.
func (n Node) Texts() []string {
	var texts []string
	for _, one := range n.List() {
		if text := one.Text(); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// List returns the elements of a list.
func (n Node) List() []Node {
	list, _ := n.value.([]any)
	nodes := make([]Node, len(list))
	for i := range list {
		nodes[i].value = list[i]
	}
	return nodes
}

// Members returns the members of an object.
func (n Node) Members() map[string]any {
	object, _ := n.value.(map[string]any)
	return object
}

// Number returns a number; zero if it is none.
func (n Node) Number() float64 {
	switch number := n.value.(type) {
	case float64:
		return number
	case json.Number:
		converted, _ := number.Float64() // zero is no number
		return converted
	}
	return 0
}

// IsList reports whether the value is a list.
func (n Node) IsList() bool {
	_, ok := n.value.([]any)
	return ok
}

// Within refuses more than MaxEntries.
func Within(what string, n int) error {
	if n > MaxEntries {
		return fmt.Errorf("%s are more than %d (MaxEntries)", what, MaxEntries)
	}
	return nil
}

// Predicate returns the predicate of a whole statement, or the document itself: dialects give either.
// Content that cosign wraps, as a text or as an object, is unwrapped.
func Predicate(value any) (Node, error) {
	n := Of(value)
	if n.Get("predicateType").Text() != "" && n.Get("predicate").Has() {
		n = n.Get("predicate")
	}
	for _, name := range []string{"Data", "data"} {
		if data := n.Get(name); data.Has() && len(n.Members()) <= 2 {
			n = data
		}
	}
	text, ok := n.value.(string)
	if !ok {
		return n, nil
	}
	if err := attest.CheckJSON([]byte(text)); err != nil {
		return Node{}, fmt.Errorf("document in a text: %w", err)
	}
	inner, err := Decode([]byte(text))
	return Of(inner), err
}
