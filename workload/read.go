package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Read reads manifests: YAML documents, or JSON objects one after another. Lists
// are unfolded, empty documents left out. name says where the bytes are from, for
// errors and for Object.Source. It refuses what parsers read differently: names
// that stand twice, and two documents without a line of "---" between them.
func Read(r io.Reader, name string) ([]Object, error) {
	input, err := io.ReadAll(io.LimitReader(r, MaxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(input) > MaxInput {
		return nil, fmt.Errorf("read %s: it has more than %d bytes (MaxInput); split it", name, MaxInput)
	}
	reader := reader{name: name}
	if trimmed := bytes.TrimLeft(input, " \t\r\n\ufeff"); len(trimmed) > 0 && trimmed[0] == '{' && isJSON(trimmed) {
		err = reader.readJSON(trimmed)
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
}

func (r *reader) where() string { return fmt.Sprintf("%s, document %d", r.name, r.document) }

func (r *reader) fail(err error) error { return fmt.Errorf("%s: %w", r.where(), err) }

func (r *reader) readJSON(input []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(input))
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
		if err := r.add(raw); err != nil {
			return err
		}
	}
}

func (r *reader) readYAML(input []byte) error {
	documents := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(input)))
	for {
		r.document++
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.fail(fmt.Errorf("YAML: %w", err))
		}
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
		if err := r.add(raw); err != nil {
			return err
		}
	}
}

// add keeps the object, or the objects of the list, that raw is.
func (r *reader) add(raw []byte) error {
	content, err := parseJSON(raw)
	if err != nil {
		return r.fail(err)
	}
	return r.unfold(content, r.where())
}

func (r *reader) unfold(content map[string]any, where string) error {
	items, isList, err := listed(content)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if isList {
		for i, item := range items {
			if err := r.unfold(item, fmt.Sprintf("%s, item %d", where, i+1)); err != nil {
				return err
			}
		}
		return nil
	}
	object, err := newObject(content, where)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if len(r.objects) == MaxObjects {
		return fmt.Errorf("%s: more than %d objects (MaxObjects); split it", r.name, MaxObjects)
	}
	r.objects = append(r.objects, object)
	return nil
}

// listed returns the items of a List, or of a typed one such as PodList, whose
// items may leave out what the list's kind says already.
func listed(content map[string]any) ([]map[string]any, bool, error) {
	kind, err := text(content, "kind")
	if err != nil {
		return nil, false, err
	}
	itemKind, isList := strings.CutSuffix(kind, "List")
	value, hasItems := content["items"]
	if !isList || !hasItems {
		return nil, false, nil
	}
	list, ok := value.([]any)
	if !ok && value != nil {
		return nil, false, fmt.Errorf("items: want a list, got %s", typeName(value))
	}
	items := make([]map[string]any, 0, len(list))
	for i, entry := range list {
		item, ok := entry.(map[string]any)
		if !ok {
			return nil, false, fmt.Errorf("item %d: want an object, got %s", i+1, typeName(entry))
		}
		if len(item) == 0 { // all such are one
			item = map[string]any{}
		}
		if item["kind"] == nil && itemKind != "" {
			item["kind"] = itemKind
			if item["apiVersion"] == nil {
				item["apiVersion"] = content["apiVersion"]
			}
		}
		items = append(items, item)
	}
	return items, true, nil
}
