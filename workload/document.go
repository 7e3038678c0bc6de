package workload

import (
	"errors"
	"fmt"
)

// ErrNoKind means that the input is not a Kubernetes object; it may be a document.
var ErrNoKind = errors.New("it has no kind, so it is no Kubernetes object")

// ParseDocument parses one JSON object that need not be a Kubernetes object: a Dockerfile's
// parse, a Terraform plan, data from a CI system. Its Kind, Name and Namespace are empty,
// whatever members it has, and it has no images at standard paths. source is its location, for
// messages; may be empty. As Parse, it refuses input beyond a bound, and JSON that parsers read
// differently.
func ParseDocument(raw []byte, source string) (Object, error) {
	if len(raw) > MaxInput {
		return Object{}, fmt.Errorf("document: more than %d bytes (MaxInput)", MaxInput)
	}
	read, err := parseJSON(raw)
	if err != nil {
		return Object{}, fmt.Errorf("document: %w", err)
	}
	if source != "" {
		read.origin = &origin{where: source}
	}
	return Object{read}, nil
}

func newDocument(d *document, from *origin) Object {
	d.origin = from
	return Object{d}
}

// IsDocument reports whether o was parsed as a document that is not a Kubernetes object.
func (o Object) IsDocument() bool { return o.document != nil && o.kind == "" }
