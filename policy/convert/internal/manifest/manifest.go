// Package manifest writes objects as YAML (1.2) as a person does: fields in the order of their types, one entry a
// line, the lines of a text. A text that YAML 1.1 reads as something else, such as no or 1:30, is quoted: kubectl
// and other loaders of Kubernetes read that version.
package manifest

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Marshal returns a value as one document, by its JSON.
func Marshal(value any) ([]byte, error) {
	node, err := Node(value)
	if err != nil {
		return nil, err
	}
	return Encode(node)
}

// Node returns a value as a node, by its JSON.
func Node(value any) (*yaml.Node, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return next(decoder)
}

// next reads a value of JSON, of which YAML refuses some texts. The fields keep their order.
func next(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Delim:
		node := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if token == '{' {
			node.Kind, node.Tag = yaml.MappingNode, "!!map"
		}
		for decoder.More() { // a key is a token, and then its value one
			child, err := next(decoder)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = decoder.Token()
		return node, err
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(token.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: token.String()}, nil
	case string:
		return scalar(token), nil
	}
	node := &yaml.Node{}
	return node, node.Encode(token)
}

// Encode returns a node as one document, with the indentation of manifests.
func Encode(node *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// scalar is a string in the style of the encoder, and in a folded one where that would double quotes.
func scalar(text string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(text)
	var styled yaml.Node
	switch err := styled.Encode(text); {
	case err != nil:
		node.Style = yaml.DoubleQuotedStyle
	case styled.Style == yaml.SingleQuotedStyle && strings.Contains(text, "'"):
		node.Style = yaml.FoldedStyle
	case styled.Style != 0:
		node.Style = styled.Style
	}
	return node
}
