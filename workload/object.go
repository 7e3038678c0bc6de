package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a Kubernetes object as it was written: its content and where it
// came from. It is immutable; whoever takes its Content must not change it.
type Object struct {
	content          map[string]any
	source           string
	apiVersion, kind string
	namespace, name  string
	generateName     string
}

// Parse reads one object from JSON. It refuses names that stand twice, which
// parsers read differently, nesting beyond MaxDepth, and an object without kind
// or apiVersion, which no policy could be matched with.
func Parse(raw []byte) (Object, error) {
	if len(raw) > MaxInput {
		return Object{}, fmt.Errorf("object: more than %d bytes (MaxInput)", MaxInput)
	}
	content, err := parseJSON(raw)
	if err != nil {
		return Object{}, fmt.Errorf("object: %w", err)
	}
	return newObject(content, "")
}

// ParseValue is Parse for what a jsontext.Decoder has read as one value, so that
// its grammar and its UTF-8 are not checked a second time. It may panic on
// anything else.
func ParseValue(value jsontext.Value) (Object, error) {
	if len(value) > MaxInput {
		return Object{}, fmt.Errorf("object: more than %d bytes (MaxInput)", MaxInput)
	}
	content, err := build(value)
	if err != nil {
		return Object{}, fmt.Errorf("object: %w", err)
	}
	return newObject(content, "")
}

// newObject checks the fields that say what the object is.
func newObject(content map[string]any, source string) (Object, error) {
	o := Object{content: content, source: source}
	metadata, err := child(content, "metadata")
	if err != nil {
		return Object{}, err
	}
	for _, field := range []struct {
		of       map[string]any
		at, name string
		to       *string
	}{
		{content, "", "apiVersion", &o.apiVersion},
		{content, "", "kind", &o.kind},
		{metadata, "metadata.", "namespace", &o.namespace},
		{metadata, "metadata.", "name", &o.name},
		{metadata, "metadata.", "generateName", &o.generateName},
	} {
		if *field.to, err = text(field.of, field.name); err != nil {
			return Object{}, fmt.Errorf("%s%w", field.at, err)
		}
	}
	switch {
	case o.kind == "":
		return Object{}, errors.New("it has no kind, so it is no Kubernetes object")
	case o.apiVersion == "":
		return Object{}, fmt.Errorf("the %s has no apiVersion", o.kind)
	}
	return o, nil
}

// IsZero reports whether o is no object at all.
func (o Object) IsZero() bool { return o.content == nil }

// Content returns the object as encoding/json decodes it (numbers are float64);
// it is not to be changed.
func (o Object) Content() map[string]any { return o.content }

// Source says where the object was read, for messages; may be empty.
func (o Object) Source() string { return o.source }

// Kind returns the object's kind.
func (o Object) Kind() string { return o.kind }

// APIVersion returns group/version, or the version alone for the core group.
func (o Object) APIVersion() string { return o.apiVersion }

// Group returns the API group; "" is the core group.
func (o Object) Group() string {
	group, _, ok := strings.Cut(o.apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// Version returns the API version.
func (o Object) Version() string { return o.apiVersion[strings.LastIndexByte(o.apiVersion, '/')+1:] }

// Namespace returns metadata.namespace; may be empty.
func (o Object) Namespace() string { return o.namespace }

// Name returns metadata.name; empty where only a generateName is given.
func (o Object) Name() string { return o.name }

// String returns kind namespace/name, for messages; a name that is yet to be
// generated is its beginning and a star.
func (o Object) String() string {
	name := o.name
	if name == "" && o.generateName != "" {
		name = o.generateName + "*"
	}
	if o.namespace != "" {
		name = o.namespace + "/" + name
	}
	return strings.TrimSpace(o.kind + " " + name)
}

// text returns a field that must be text if it is there.
func text(object map[string]any, field string) (string, error) {
	value, ok := object[field]
	if !ok || value == nil {
		return "", nil
	}
	s, ok := value.(string)
	if !ok {
		return "", fmt.Errorf("%s: want text, got %s", field, typeName(value))
	}
	return s, nil
}

// typeName says in JSON's words what a decoded value is.
func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case float64, int64, json.Number:
		return "a number"
	case string:
		return "text"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

// child returns a field that must be an object if it is there, else nil.
func child(object map[string]any, field string) (map[string]any, error) {
	value, ok := object[field]
	if !ok || value == nil {
		return nil, nil
	}
	inner, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: want an object, got %s", field, typeName(value))
	}
	return inner, nil
}
