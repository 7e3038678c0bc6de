package workload

import (
	"errors"
	"fmt"
)

// ErrNoKind says that something is no Kubernetes object; it may be a document.
var ErrNoKind = errors.New("it has no kind, so it is no Kubernetes object")

// ParseDocument reads one JSON object that need not be a Kubernetes object: a
// Dockerfile's parse, a Terraform plan, what a CI system sends. Its Kind, Name and
// Namespace are empty, whatever members it has, and no image stands at a standard
// place of it. Source says where it was read, for messages; may be empty. What
// parsers read differently is refused, and what exceeds a bound, as Parse does.
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

// IsDocument reports whether o was read as a document that is no Kubernetes object.
func (o Object) IsDocument() bool { return o.document != nil && o.kind == "" }
