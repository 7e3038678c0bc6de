package generation

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// template writes an object of data.
func (o Options) template(from Document) (Entry, error) {
	w := &writer{Options: o, document: from, interpolates: hasVariables([]any{from.Name, from.Namespace, from.Data})}
	data, _ := from.Data.(map[string]any)
	metadata, _ := data["metadata"].(map[string]any)
	if err := written(metadata); err != nil {
		return Entry{}, err
	}
	object := &yaml.Node{Kind: yaml.MappingNode}
	member(object, "apiVersion", text(from.APIVersion))
	member(object, "kind", text(from.Kind))
	own, err := w.metadata(metadata)
	if err != nil {
		return Entry{}, err
	}
	member(object, "metadata", own)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if key == "apiVersion" || key == "kind" || key == "metadata" || data[key] == nil {
			continue
		}
		node, err := w.value(data[key], "data."+key, w.isTexts("data", key, data[key], false))
		if err != nil {
			return Entry{}, err
		}
		member(object, key, node)
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(object); err != nil {
		return Entry{}, fmt.Errorf("write the template: %w", err)
	}
	made := Entry{Template: &Template{Value: out.String()}}
	if w.interpolates {
		made.Template.Interpolate = "cel"
	}
	return made, nil
}

// written refuses metadata that the API server writes: the result leaves them out.
func written(metadata map[string]any) error {
	for _, key := range []string{"uid", "selfLink", "creationTimestamp", "managedFields", "resourceVersion", "generation"} {
		if _, has := metadata[key]; has {
			return &source.Unsupported{Path: "data.metadata." + key, Found: "a field that the API server writes"}
		}
	}
	return nil
}

// writer writes one object.
type writer struct {
	Options
	document     Document
	interpolates bool
}

// metadata puts the name and the namespace before the other members.
func (w *writer) metadata(written map[string]any) (*yaml.Node, error) {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range []struct{ key, value string }{{"name", w.document.Name}, {"namespace", w.document.Namespace}} {
		if f.value == "" {
			continue
		}
		value, err := w.phrase(f.value, f.key, true)
		if err != nil {
			return nil, err
		}
		member(node, f.key, value)
	}
	for _, key := range slices.Sorted(maps.Keys(written)) {
		if key == "name" || key == "namespace" || written[key] == nil {
			continue
		}
		value, err := w.value(written[key], "data.metadata."+key, key == "labels" || key == "annotations")
		if err != nil {
			return nil, err
		}
		member(node, key, value)
	}
	return node, nil
}

func member(of *yaml.Node, key string, value *yaml.Node) {
	of.Content = append(of.Content, text(key), value)
}

func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	if strings.ContainsRune(s, '\n') {
		n.Style = yaml.LiteralStyle
	}
	return n
}

// value writes a value; isTexts says that its members are texts for an API server, and are written as such.
func (w *writer) value(value any, where string, isTexts bool) (*yaml.Node, error) {
	switch v := value.(type) {
	case map[string]any:
		node := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			here := source.Below(where, key)
			if strings.Contains(key, "{{") || strings.Contains(key, "((") {
				return nil, &source.Unsupported{Path: here, Found: "a variable in a key"}
			}
			if v[key] == nil {
				continue // the API server keeps none
			}
			inner, err := w.value(v[key], here, w.isTexts(where, key, v[key], isTexts))
			if err != nil {
				return nil, err
			}
			member(node, key, inner)
		}
		if len(node.Content) == 0 {
			node.Style = yaml.FlowStyle
		}
		return node, nil
	case []any:
		node := &yaml.Node{Kind: yaml.SequenceNode}
		for i, one := range v {
			inner, err := w.value(one, source.Index(where, i), false)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, inner)
		}
		if len(node.Content) == 0 {
			node.Style = yaml.FlowStyle
		}
		return node, nil
	case string:
		return w.phrase(v, where, isTexts)
	}
	written := "null"
	tag := "!!null"
	switch v := value.(type) {
	case bool:
		written, tag = strconv.FormatBool(v), "!!bool"
	case float64:
		written, tag = strconv.FormatFloat(v, 'f', -1, 64), "!!float"
		if v == float64(int64(v)) {
			tag = "!!int"
		}
	}
	if isTexts && tag != "!!null" {
		return text(written), nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: written}, nil
}

// phrase writes a text with the expressions of its variables; isText says that it must be one.
func (w *writer) phrase(s, where string, isText bool) (*yaml.Node, error) {
	if !strings.Contains(s, "{{") {
		if strings.Contains(s, "$(") && strings.Contains(s, ")") {
			return nil, &source.Unsupported{Path: where, Found: "a reference"}
		}
		if w.interpolates {
			s = strings.ReplaceAll(s, "((", `\((`)
		}
		return text(s), nil
	}
	made, err := w.expression(s, where, isText)
	return text("(( " + made + " ))"), err
}

// expression writes a text with variables; isText says that it must be one.
func (w *writer) expression(s, where string, isText bool) (string, error) {
	e, err := jmespath.Value(s, w.Scope)
	if err != nil {
		return "", below(where, err)
	}
	switch {
	case isText && (e.Type != jmespath.String || e.Optional):
		return "", &source.Unsupported{Path: where, Found: fmt.Sprintf("the value %s, which may be no text", s)}
	case e.Optional:
		softly, _, ok := e.Softly("null")
		if !ok {
			return "", &source.Unsupported{Path: where, Found: fmt.Sprintf("the value %s, which may be null", s)}
		}
		return softly, nil
	}
	return e.Text, nil
}

// isTexts reports whether the members of an object, or a value, are texts for an API server, which writes a number
// as such. Inherited says that the value is a member of such an object.
func (w *writer) isTexts(where, key string, value any, inherited bool) bool {
	if _, isObject := value.(map[string]any); !isObject {
		return inherited
	}
	d := &w.document
	switch key {
	case "matchLabels", "nodeSelector":
		return true
	case "labels", "annotations":
		return strings.HasSuffix(where, ".metadata")
	}
	return where == "data" && d.APIVersion == "v1" && (d.Kind == "ConfigMap" && key == "data" || d.Kind == "Secret" && key == "stringData")
}

// hasVariables reports whether a text in a value has a variable.
func hasVariables(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.Contains(v, "{{")
	case []any:
		return slices.ContainsFunc(v, hasVariables)
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasVariables)
	}
	return false
}
