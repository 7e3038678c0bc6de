package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/quaymaster/quaymaster/workload/internal/yamldocument"
)

// Read parses manifests: YAML documents, or consecutive JSON objects. Lists are unfolded, empty
// documents left out. name is the name of the input, for errors and for Object.Source. Read
// refuses input that parsers read differently: repeated names, two documents without a line of
// "---" between them, and items in an object that is not a List, of which kubectl applies nothing
// else.
func Read(r io.Reader, name string) ([]Object, error) {
	return readAll(r, reader{name: name})
}

// ReadDocuments is Read for documents that are not Kubernetes objects: each is one object as from
// ParseDocument, and no list is unfolded. An input without documents is an error, because its
// producer failed.
func ReadDocuments(r io.Reader, name string) ([]Object, error) {
	documents, err := readAll(r, reader{name: name, ofDocuments: true})
	if err == nil && len(documents) == 0 {
		err = fmt.Errorf("read %s: there is no document in it", name)
	}
	return documents, err
}

func readAll(r io.Reader, reader reader) ([]Object, error) {
	name := reader.name
	input, err := io.ReadAll(io.LimitReader(r, MaxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(input) > MaxInput {
		return nil, fmt.Errorf("read %s: it has more than %d bytes (MaxInput); split it", name, MaxInput)
	}
	if trimmed := bytes.TrimLeft(input, " \t\r\n\ufeff"); len(trimmed) > 0 && trimmed[0] == '{' && isJSON(trimmed) {
		err = reader.readJSON(trimmed, input[:len(input)-len(trimmed)])
	} else {
		err = reader.readYAML(input)
	}
	if err != nil {
		return nil, err
	}
	return reader.objects, nil
}

// isJSON distinguishes consecutive JSON values from YAML in flow style by the first value, and by
// lines that separate YAML documents: in JSON a string contains no line break.
func isJSON(b []byte) bool {
	if bytes.Contains(b, []byte("\n---")) {
		return false
	}
	var raw json.RawMessage
	return json.NewDecoder(bytes.NewReader(b)).Decode(&raw) == nil
}

type reader struct {
	name     string
	document int
	objects  []Object
	// ofDocuments: the input has documents that are not Kubernetes objects.
	ofDocuments bool
}

func (r *reader) where() string { return fmt.Sprintf("%s, document %d", r.name, r.document) }

func (r *reader) fail(err error) error { return fmt.Errorf("%s: %w", r.where(), err) }

// readJSON parses objects after the trimmed white space.
func (r *reader) readJSON(input, trimmed []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(input))
	at, from := Position{Line: 1, Column: 1}.after(string(trimmed)), 0
	for {
		r.document++
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.fail(fmt.Errorf("JSON: %w", err))
		}
		begin := int(decoder.InputOffset()) - len(raw)
		at, from = at.after(string(input[from:begin])), begin
		text := &written{file: r.name, text: string(raw), line: at.Line, column: at.Column}
		if err := r.add(raw, text); err != nil {
			return err
		}
	}
}

func (r *reader) readYAML(input []byte) error {
	documents := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(input)))
	for line := 1; ; {
		r.document++
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.fail(fmt.Errorf("YAML: %w", err))
		}
		begin := line
		line += bytes.Count(document, []byte("\n")) + 1 // with the following ---
		raw, err := yamldocument.ToJSON(document)
		if err != nil {
			return r.fail(err)
		}
		if string(raw) == "null" { // as kubectl detects an empty document; a tag on an object has no effect
			continue
		}
		text := &written{file: r.name, text: string(document), line: begin, column: 1, isYAML: true, template: templateOf(document)}
		if err := r.add(raw, text); err != nil {
			return err
		}
	}
}

// add records the object in raw, or the objects of the list in raw.
func (r *reader) add(raw []byte, text *written) error {
	read, err := parseJSON(raw)
	if err != nil {
		return r.fail(err)
	}
	from := &origin{where: r.where(), text: text}
	if r.ofDocuments {
		return r.keep(newDocument(read, from))
	}
	return r.unfold(Object{read}.Root(), from, 0)
}

// keep records an object.
func (r *reader) keep(object Object) error {
	if len(r.objects) == MaxObjects {
		return fmt.Errorf("%s: more than %d objects (MaxObjects); split it", r.name, MaxObjects)
	}
	r.objects = append(r.objects, object)
	return nil
}

// unfold records an object that is nested in so many lists, or the objects of a list. A nested
// list is not parsed again: each would cost as much as its whole content.
func (r *reader) unfold(v Value, from *origin, lists int) error {
	itemKind, isList, err := listed(v, lists)
	if err != nil {
		return fmt.Errorf("%s: %w", from.where, err)
	}
	if !isList {
		object, err := v.object(from)
		if err == nil {
			object, err = object.labelled()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", from.where, err)
		}
		return r.keep(object)
	}
	for i, entry := range v.Member("items").Elements() {
		item, err := entry.item(itemKind, v.Member("apiVersion"))
		if err != nil {
			return fmt.Errorf("%s: item %d: %w", from.where, i+1, err)
		}
		at := slices.Concat(from.at, []string{"items", strconv.Itoa(i)})
		if err := r.unfold(item, &origin{where: fmt.Sprintf("%s, item %d", from.where, i+1), text: from.text, at: at}, lists+1); err != nil {
			return err
		}
	}
	return nil
}

// listed detects a List, or a typed one such as PodList, by its kind, and returns the default
// kind of its items. kubectl detects it by items, whatever the kind. Where the two differ,
// kubectl applies something else than the object's kind, so the object is refused.
func listed(v Value, lists int) (itemKind string, isList bool, err error) {
	kind, err := v.text("kind")
	if err != nil {
		return "", false, err
	}
	itemKind, isList = strings.CutSuffix(kind, "List")
	items := v.Member("items")
	switch {
	case kind == "" || items.Kind() == jsontext.KindInvalid:
		return "", false, nil
	case items.IsNull():
		return itemKind, isList && lists == 0, nil // in a list, kubectl treats it as an object
	case !isList:
		return "", false, fmt.Errorf("items: kubectl takes a %s with items for a list, and applies nothing else of it; take them out, or make the kind List", kind)
	case !items.IsList():
		return "", false, fmt.Errorf("items: want a list, got %s", kindName(items.Kind()))
	case lists == MaxLists:
		return "", false, fmt.Errorf("more than %d lists, one in the other (MaxLists); write their items as documents of their own", MaxLists)
	}
	return itemKind, true, nil
}

// item returns an item of a list, with the default kind and version.
func (v Value) item(kind string, apiVersion Value) (Value, error) {
	switch {
	case !v.IsObject():
		return Value{}, fmt.Errorf("want an object, got %s", kindName(v.Kind()))
	case kind == "" || !v.Member("kind").IsNull():
		return v, nil
	}
	item, err := v.ofKind(kind, apiVersion)
	if err != nil {
		return Value{}, err
	}
	return Object{item}.Root(), nil
}

// object returns the value as an object of its own.
func (v Value) object(from *origin) (Object, error) {
	if v.at == 0 {
		return newObject(v.in, from)
	}
	alone, err := read(v.node().value.of(v.in.text))
	if err != nil {
		return Object{}, err
	}
	return newObject(alone, from)
}

// ofKind returns an object without a kind, and perhaps without a version, as one of its own with
// both.
func (v Value) ofKind(kind string, apiVersion Value) (*document, error) {
	item := v.decodedObject()
	item["kind"] = kind
	if item["apiVersion"] == nil {
		item["apiVersion"] = apiVersion.Decoded()
	}
	return encoded(item)
}

// encoded returns the document of an object that was decoded and changed.
func encoded(content map[string]any) (*document, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	return parseJSON(raw)
}
