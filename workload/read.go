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
	"sigs.k8s.io/yaml"
)

// Read reads manifests: YAML documents, or JSON objects one after another. Lists
// are unfolded, empty documents left out. name says where the bytes are from, for
// errors and for Object.Source. It refuses what parsers read differently: names
// that stand twice, and two documents without a line of "---" between them.
func Read(r io.Reader, name string) ([]Object, error) {
	return readAll(r, reader{name: name})
}

// ReadDocuments is Read for documents that are no Kubernetes objects: each is one
// object as ParseDocument makes it, and no list is unfolded. That there is none is
// an error, for whoever made the input failed.
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

// isJSON tells JSON from YAML's flow style by the first value.
func isJSON(b []byte) bool {
	var raw json.RawMessage
	return json.NewDecoder(bytes.NewReader(b)).Decode(&raw) == nil
}

type reader struct {
	name     string
	document int
	objects  []Object
	// ofDocuments: what is read are no Kubernetes objects.
	ofDocuments bool
}

func (r *reader) where() string { return fmt.Sprintf("%s, document %d", r.name, r.document) }

func (r *reader) fail(err error) error { return fmt.Errorf("%s: %w", r.where(), err) }

// readJSON reads objects that stand behind what was trimmed.
func (r *reader) readJSON(input, trimmed []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(input))
	at := (&written{text: string(trimmed), line: 1, column: 1}).place(len(trimmed))
	from := 0
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
		at = (&written{text: string(input[from:begin]), line: at.Line, column: at.Column}).place(begin - from)
		from = begin
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
		line += bytes.Count(document, []byte("\n")) + 1 // with the --- behind it
		empty, err := checkYAML(document)
		if err != nil {
			return r.fail(fmt.Errorf("YAML: %w", err))
		}
		if empty {
			continue
		}
		raw, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return r.fail(err)
		}
		text := &written{file: r.name, text: string(document), line: begin, column: 1, isYAML: true, template: templateOf(document)}
		if err := r.add(raw, text); err != nil {
			return err
		}
	}
}

// add keeps the object, or the objects of the list, that raw is.
func (r *reader) add(raw []byte, text *written) error {
	read, err := parseJSON(raw)
	if err != nil {
		return r.fail(err)
	}
	from := &origin{where: r.where(), text: text}
	if r.ofDocuments {
		return r.keep(newDocument(read, from))
	}
	return r.unfold(read, from)
}

// keep adds an object to those that were read.
func (r *reader) keep(object Object) error {
	if len(r.objects) == MaxObjects {
		return fmt.Errorf("%s: more than %d objects (MaxObjects); split it", r.name, MaxObjects)
	}
	r.objects = append(r.objects, object)
	return nil
}

func (r *reader) unfold(read *document, from *origin) error {
	items, isList, err := listed(read)
	if err != nil {
		return fmt.Errorf("%s: %w", from.where, err)
	}
	if isList {
		for i, item := range items {
			at := slices.Concat(from.at, []string{"items", strconv.Itoa(i)})
			if err := r.unfold(item, &origin{where: fmt.Sprintf("%s, item %d", from.where, i+1), text: from.text, at: at}); err != nil {
				return err
			}
		}
		return nil
	}
	object, err := newObject(read, from)
	if err != nil {
		return fmt.Errorf("%s: %w", from.where, err)
	}
	return r.keep(object)
}

// listed returns the items of a List, or of a typed one such as PodList, whose
// items may leave out what the list's kind says already.
func listed(read *document) ([]*document, bool, error) {
	root := Object{read}.Root()
	kind, err := root.text("kind")
	if err != nil {
		return nil, false, err
	}
	itemKind, isList := strings.CutSuffix(kind, "List")
	value := root.Member("items")
	if !isList || value.Kind() == jsontext.KindInvalid {
		return nil, false, nil
	}
	if !value.IsList() && !value.IsNull() {
		return nil, false, fmt.Errorf("items: want a list, got %s", kindName(value.Kind()))
	}
	var items []*document
	for i, entry := range value.Elements() {
		if !entry.IsObject() {
			return nil, false, fmt.Errorf("item %d: want an object, got %s", i+1, kindName(entry.Kind()))
		}
		item, err := entry.alone()
		if entry.Member("kind").IsNull() && itemKind != "" {
			item, err = entry.ofKind(itemKind, root.Member("apiVersion"))
		}
		if err != nil {
			return nil, false, fmt.Errorf("item %d: %w", i+1, err)
		}
		items = append(items, item)
	}
	return items, true, nil
}

// alone returns an object in another as one of its own.
func (v Value) alone() (*document, error) { return read(v.node().value.of(v.in.text)) }

// ofKind is alone for an object that does not say its kind, nor perhaps its version.
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
