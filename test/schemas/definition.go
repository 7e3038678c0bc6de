package schemas

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// Definition is a CustomResourceDefinition in a file.
type Definition struct {
	root     yaml.Node
	Group    string
	Kind     string
	Versions []string
}

// Read returns the definition in a file.
func Read(file string) (*Definition, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read a definition: %w", err)
	}
	d := &Definition{}
	if err := yaml.Unmarshal(content, &d.root); err != nil {
		return nil, fmt.Errorf("read the definition %s: %w", filepath.Base(file), err)
	}
	var named struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct{ Name string }
		}
	}
	if err := d.root.Decode(&named); err != nil {
		return nil, fmt.Errorf("read the definition %s: %w", filepath.Base(file), err)
	}
	d.Group, d.Kind = named.Spec.Group, named.Spec.Names.Kind
	for _, v := range named.Spec.Versions {
		d.Versions = append(d.Versions, v.Name)
	}
	return d, nil
}

// Spec returns the schema of spec in a version.
func (d *Definition) Spec(version string) (map[string]any, error) {
	node := d.spec(version)
	if node == nil {
		return nil, fmt.Errorf("the definition of %s has no schema of spec in %s", d.Kind, version)
	}
	var schema map[string]any
	if err := node.Decode(&schema); err != nil {
		return nil, fmt.Errorf("read the schema of %s %s: %w", d.Kind, version, err)
	}
	return schema, nil
}

// SetSpec replaces that schema.
func (d *Definition) SetSpec(version string, schema map[string]any) error {
	node := d.spec(version)
	if node == nil {
		return fmt.Errorf("the definition of %s has no schema of spec in %s", d.Kind, version)
	}
	var made yaml.Node
	if err := made.Encode(schema); err != nil {
		return fmt.Errorf("write the schema of %s %s: %w", d.Kind, version, err)
	}
	compact(&made)
	*node = made
	return nil
}

// compact writes the innermost mappings and the lists of texts on one line each.
func compact(node *yaml.Node) {
	inner := true
	for _, below := range node.Content {
		compact(below)
		inner = inner && (below.Kind == yaml.ScalarNode || below.Kind == yaml.SequenceNode && below.Style == yaml.FlowStyle)
	}
	if len(node.Content) > 0 && inner {
		node.Style = yaml.FlowStyle
	}
}

// Encode returns the definition as a file.
func (d *Definition) Encode() ([]byte, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(&d.root); err != nil {
		return nil, fmt.Errorf("write the definition of %s: %w", d.Kind, err)
	}
	return text.Bytes(), nil
}

func (d *Definition) spec(version string) *yaml.Node {
	versions := at(&d.root, "spec", "versions")
	if versions == nil {
		return nil
	}
	for _, v := range versions.Content {
		if name := at(v, "name"); name != nil && name.Value == version {
			return at(v, "schema", "openAPIV3Schema", "properties", "spec")
		}
	}
	return nil
}

// at returns the node at a path of keys; nil if there is none.
func at(node *yaml.Node, path ...string) *yaml.Node {
	if node.Kind == yaml.DocumentNode && len(node.Content) > 0 {
		node = node.Content[0]
	}
	for _, key := range path {
		var found *yaml.Node
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				found = node.Content[i+1]
			}
		}
		if found == nil {
			return nil
		}
		node = found
	}
	return node
}
