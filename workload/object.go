package workload

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a Kubernetes object as it was read, or a document that is none (see ParseDocument):
// its content and its location. It is immutable and safe for concurrent use. Callers must not
// change its Content.
type Object struct{ *document }

// document is the text of an object and its parsed fields.
type document struct {
	text  string
	nodes []node

	origin           *origin // nil if there is none
	apiVersion, kind string
	namespace, name  string
	generateName     string

	decode  sync.Once
	content map[string]any // decoded on first use
}

// Parse parses one object from JSON. It refuses repeated names, which parsers read differently,
// nesting beyond MaxDepth, and an object without kind or apiVersion, which policies could not
// match.
func Parse(raw []byte) (Object, error) {
	if len(raw) > MaxInput {
		return Object{}, fmt.Errorf("object: more than %d bytes (MaxInput)", MaxInput)
	}
	read, err := parseJSON(raw)
	if err != nil {
		return Object{}, fmt.Errorf("object: %w", err)
	}
	return newObject(read, nil)
}

// ParseValue is Parse for one value from a jsontext.Decoder, so that its grammar and its UTF-8
// are not checked a second time. It may panic on anything else.
func ParseValue(value jsontext.Value) (Object, error) {
	switch {
	case len(value) == 0:
		return Object{}, errors.New("object: there is none")
	case len(value) > MaxInput:
		return Object{}, fmt.Errorf("object: more than %d bytes (MaxInput)", MaxInput)
	}
	read, err := read(string(value))
	if err != nil {
		return Object{}, fmt.Errorf("object: %w", err)
	}
	return newObject(read, nil)
}

// newObject checks the identifying fields of the object.
func newObject(d *document, from *origin) (Object, error) {
	d.origin = from
	o := Object{d}
	root := o.Root()
	metadata, err := root.child("metadata")
	if err != nil {
		return Object{}, err
	}
	for _, field := range [...]struct {
		of       Value
		at, name string
		to       *string
	}{
		{root, "", "apiVersion", &d.apiVersion},
		{root, "", "kind", &d.kind},
		{metadata, "metadata.", "namespace", &d.namespace},
		{metadata, "metadata.", "name", &d.name},
		{metadata, "metadata.", "generateName", &d.generateName},
	} {
		*field.to, err = field.of.text(field.name)
		if err != nil {
			return Object{}, fmt.Errorf("%s%w", field.at, err)
		}
	}
	switch {
	case d.kind == "":
		return Object{}, ErrNoKind
	case d.apiVersion == "":
		return Object{}, fmt.Errorf("the %s has no apiVersion", d.kind)
	}
	return o, nil
}

// IsZero reports whether o is the zero Object.
func (o Object) IsZero() bool { return o.document == nil }

// about returns the document, or an empty one for the zero Object.
func (o Object) about() *document {
	if o.document == nil {
		return &document{}
	}
	return o.document
}

// Content returns the object as decoded by encoding/json (numbers are float64); callers must not
// change it. It is decoded at the first call; Root reads single values without decoding.
func (o Object) Content() map[string]any {
	if o.document == nil {
		return nil
	}
	o.decode.Do(func() { o.content = o.Root().decodedObject() })
	return o.content
}

// JSON returns the object's text, in which numbers are as written; empty for the zero Object.
func (o Object) JSON() []byte { return []byte(o.about().text) }

// Size is the length of its text, in bytes; 0 for none.
func (o Object) Size() int { return len(o.about().text) }

// Source is the object's location, for messages; may be empty.
func (o Object) Source() string {
	if from := o.about().origin; from != nil {
		return from.where
	}
	return ""
}

// Kind returns the object's kind; empty for a document.
func (o Object) Kind() string { return o.about().kind }

// APIVersion returns group/version, or the version alone for the core group.
func (o Object) APIVersion() string { return o.about().apiVersion }

// Group returns the API group; "" is the core group.
func (o Object) Group() string {
	group, _, ok := strings.Cut(o.APIVersion(), "/")
	if !ok {
		return ""
	}
	return group
}

// Version returns the API version.
func (o Object) Version() string {
	return o.APIVersion()[strings.LastIndexByte(o.APIVersion(), '/')+1:]
}

// Namespace returns metadata.namespace; may be empty.
func (o Object) Namespace() string { return o.about().namespace }

// Name returns metadata.name; empty where only a generateName is given.
func (o Object) Name() string { return o.about().name }

// String returns kind namespace/name, for messages. A generated name is its prefix and a star. A
// document is called "document".
func (o Object) String() string {
	d := o.about()
	if o.IsDocument() {
		return "document"
	}
	name := d.name
	if name == "" && d.generateName != "" {
		name = d.generateName + "*"
	}
	if d.namespace != "" {
		name = d.namespace + "/" + name
	}
	return strings.TrimSpace(d.kind + " " + name)
}

// text returns a member that must be text if it is present.
func (v Value) text(name string) (string, error) {
	member := v.Member(name)
	if !member.IsText() && !member.IsNull() {
		return "", fmt.Errorf("%s: want text, got %s", name, kindName(member.Kind()))
	}
	return member.Text(), nil
}

// child returns a member that must be an object if it is present, otherwise none.
func (v Value) child(name string) (Value, error) {
	member := v.Member(name)
	switch {
	case member.IsObject():
		return member, nil
	case member.IsNull():
		return Value{}, nil
	}
	return Value{}, fmt.Errorf("%s: want an object, got %s", name, kindName(member.Kind()))
}
