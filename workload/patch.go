package workload

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Operation is one step of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Pin returns the operations that set the text of a use to image: a test for the original text,
// and its replacement. There are none if the text is already image, so that pinning twice is
// pinning once. A use with a reference from a Transform is an error: its text is not a reference.
func Pin(use Use, image string) ([]Operation, error) {
	switch {
	case image == "":
		return nil, fmt.Errorf("pin %s at %s: no image was given", use.Image, use.Pointer)
	case use.Text == image:
		return nil, nil
	case use.Text != use.Image:
		return nil, fmt.Errorf("pin %s at %s: what stands there is %q, from which the reference was made; an extractor with a transformation cannot be pinned",
			use.Image, use.Pointer, use.Text)
	}
	return []Operation{
		{Op: "test", Path: use.Pointer, Value: use.Text},
		{Op: "replace", Path: use.Pointer, Value: image},
	}, nil
}

// Apply returns the object after the operations. It supports those of Pin: test and replace. The
// object itself stays unchanged.
func Apply(o Object, operations []Operation) (Object, error) {
	content, _ := o.Root().Decoded().(map[string]any)
	for i, op := range operations {
		if err := op.apply(content); err != nil {
			return Object{}, fmt.Errorf("patch %s: operation %d: %s %s: %w", o, i+1, op.Op, op.Path, err)
		}
	}
	changed, err := o.With(content)
	if err != nil {
		return Object{}, fmt.Errorf("patch %s: %w", o, err)
	}
	return changed, nil
}

// With returns an object of the same source with another content, which must be valid for JSON.
func (o Object) With(content map[string]any) (Object, error) {
	changed, err := encoded(content)
	if err != nil {
		return Object{}, err
	}
	if o.IsDocument() {
		return newDocument(changed, o.origin), nil
	}
	return newObject(changed, o.origin)
}

func (op Operation) apply(content map[string]any) error {
	tokens, err := parsePointer(op.Path)
	if err != nil {
		return err
	}
	if len(tokens) == 0 {
		return errors.New("the whole object cannot be changed")
	}
	var at any = content
	for _, token := range tokens[:len(tokens)-1] {
		at, err = step(at, token)
		if err != nil {
			return err
		}
	}
	last := tokens[len(tokens)-1]
	was, err := step(at, last)
	if err != nil {
		return err
	}
	switch op.Op {
	case "test":
		if !reflect.DeepEqual(was, op.Value) {
			return fmt.Errorf("expected %v, found %v", op.Value, was)
		}
	case "replace":
		set(at, last, clone(op.Value))
	default:
		return errors.New("the operation is neither test nor replace")
	}
	return nil
}

// step returns the child of an object or list.
func step(at any, token string) (any, error) {
	switch v := at.(type) {
	case map[string]any:
		if child, ok := v[token]; ok {
			return child, nil
		}
	case []any:
		if i, ok := position(token, len(v)); ok {
			return v[i], nil
		}
	}
	return nil, fmt.Errorf("there is no %q", token)
}

// set changes a child that step found.
func set(at any, token string, value any) {
	switch v := at.(type) {
	case map[string]any:
		v[token] = value
	case []any:
		if i, ok := position(token, len(v)); ok {
			v[i] = value
		}
	}
}

// clone copies decoded JSON.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		copied := maps.Clone(v)
		for name, child := range copied {
			copied[name] = clone(child)
		}
		return copied
	case []any:
		copied := slices.Clone(v)
		for i, child := range copied {
			copied[i] = clone(child)
		}
		return copied
	default:
		return value
	}
}
