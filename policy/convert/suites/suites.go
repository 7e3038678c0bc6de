package suites

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// Problem is a part of a suite that cannot be converted.
type Problem = source.Problem

// Options are the policies and places of a conversion.
type Options struct {
	// From is the folder of the suite's file, and To that of the result. Both are absolute, or relative
	// to the same folder.
	From, To string
	// Policies are those that were converted. A suite is about those of its files.
	Policies []cel.Policy
	// Files has the file in which the results of each file of policies are, and what stays of it, by its path; relative
	// as From is.
	Files map[string]string
	// Rest is what stays of policies.
	Rest []cel.Policy
}

// Result is a converted suite.
type Result struct {
	// Text is its file.
	Text []byte
	// Values are files beside it, by their path relative to Options.To: values that name the new policies.
	Values map[string][]byte
	// Problems are the parts that cannot be converted; then there is no text.
	Problems []Problem
	// Converted reports whether a row is about a converted policy; else the suite is as it was, with files
	// that are named from the new place.
	Converted bool
}

// Convert converts the suites of a file, which may have several documents. An error means that the text is no suite.
func Convert(text []byte, options Options) (Result, error) {
	c := &converter{Options: options}
	c.result.Values = map[string][]byte{}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c.result, fmt.Errorf("read the suite: %w", err)
		}
		if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
			return c.result, errors.New("read the suite: want an object")
		}
		c.suite(node.Content[0])
		if err := encoder.Encode(&node); err != nil {
			return c.result, fmt.Errorf("write the suite: %w", err)
		}
	}
	if err := encoder.Close(); err != nil {
		return c.result, fmt.Errorf("write the suite: %w", err)
	}
	if len(c.result.Problems) == 0 {
		c.result.Text = out.Bytes()
	}
	return c.result, nil
}

type converter struct {
	Options
	result Result
	// own are the policies of the suite's files.
	own []cel.Policy
	// exempts: the suite has exceptions.
	exempts bool
}

// stays reports whether a part of a policy was not converted.
func (c *converter) stays(name string) bool {
	return slices.ContainsFunc(c.Rest, func(p cel.Policy) bool { return p.Name == name || p.Namespace+"/"+p.Name == name })
}

func (c *converter) refuse(path, found, do string) {
	c.result.Problems = append(c.result.Problems, Problem{Path: path, Found: found, Do: do})
}

// ofFiles returns the policies of the files and folders of a list.
func (c *converter) ofFiles(list *yaml.Node) (own []cel.Policy) {
	for _, p := range c.Policies {
		if list != nil && slices.ContainsFunc(list.Content, func(one *yaml.Node) bool {
			below, err := filepath.Rel(filepath.Join(c.From, one.Value), p.File)
			return err == nil && below != ".." && !strings.HasPrefix(below, ".."+string(filepath.Separator))
		}) {
			own = append(own, p)
		}
	}
	return own
}

// suite converts one document.
func (c *converter) suite(suite *yaml.Node) {
	c.own = c.ofFiles(field(suite, "policies"))
	c.exempts = field(suite, "exceptions") != nil || slices.ContainsFunc(c.own, func(p cel.Policy) bool { return p.Kind == "PolicyException" })
	for i := 0; i+1 < len(suite.Content); i += 2 {
		key, value := suite.Content[i].Value, suite.Content[i+1]
		switch key {
		case "policies", "exceptions":
			c.policyFiles(value)
		case "resources", "clusterResources", "targetResources", "paramResources", "jsonPayload", "jsonPayloads", "userinfo", "context", "trustedRoot":
			c.files(value)
		case "variables":
			c.variables(value)
		case "values":
			c.values(value, "values")
		case "globalContextEntries", "images", "keys":
			c.nestedFiles(value)
		case "results":
			c.rows(value)
		}
	}
}

// moved is a file's name from the new place.
func (c *converter) moved(name string) string {
	if strings.Contains(name, "://") || filepath.IsAbs(name) {
		return name
	}
	path, err := filepath.Rel(c.To, filepath.Join(c.From, name))
	if err != nil {
		return name
	}
	return filepath.ToSlash(path)
}

// files moves the name of a file, or those of a list.
func (c *converter) files(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.Value != "" {
		node.Value = c.moved(node.Value)
	}
	if node.Kind == yaml.SequenceNode {
		for _, one := range node.Content {
			c.files(one)
		}
	}
}

// nestedFiles moves the names of files in the entries of a list.
func (c *converter) nestedFiles(list *yaml.Node) {
	for _, entry := range list.Content {
		for i := 0; i+1 < len(entry.Content); i += 2 {
			if slices.Contains([]string{"resourceFiles", "file", "files", "privateKey", "publicKey"}, entry.Content[i].Value) {
				c.files(entry.Content[i+1])
			}
		}
	}
}

// policyFiles names the files of the results, which have what stays of a source as well.
func (c *converter) policyFiles(list *yaml.Node) {
	if list.Kind != yaml.SequenceNode {
		return
	}
	var out []*yaml.Node
	for _, one := range list.Content {
		file := filepath.Join(c.From, one.Value)
		made, ok := c.Files[file]
		if ok {
			converted := *one
			path, err := filepath.Rel(c.To, made)
			if err != nil {
				path = made
			}
			converted.Value = filepath.ToSlash(path)
			out = append(out, &converted)
		}
		if !ok {
			c.files(one)
			out = append(out, one)
		}
	}
	list.Content = out
}

// field returns the value of a key of an object; nil for none.
func field(of *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == key {
			return of.Content[i+1]
		}
	}
	return nil
}

// at is the text at a key of an object; empty for none.
func at(of *yaml.Node, key string) string {
	if value := field(of, key); value != nil {
		return value.Value
	}
	return ""
}

// without returns the object without a key.
func without(of *yaml.Node, keys ...string) *yaml.Node {
	out := *of
	out.Content = nil
	for i := 0; i+1 < len(of.Content); i += 2 {
		if !slices.Contains(keys, of.Content[i].Value) {
			out.Content = append(out.Content, of.Content[i], of.Content[i+1])
		}
	}
	return &out
}

// set returns the object with a value at a key, which comes behind another one where it is new.
func set(of *yaml.Node, key string, value *yaml.Node, behind string) *yaml.Node {
	out := *of
	out.Content = slices.Clone(of.Content)
	at := len(out.Content)
	for i := 0; i+1 < len(of.Content); i += 2 {
		switch of.Content[i].Value {
		case key:
			out.Content[i+1] = value
			return &out
		case behind:
			at = i + 2
		}
	}
	out.Content = slices.Insert(out.Content, at, scalar(key), value)
	return &out
}

// scalar is a text. One that other readers of YAML take for a value of another type is quoted.
func scalar(value string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if text, err := yaml.Marshal(value); err == nil && text[0] == '"' {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}
