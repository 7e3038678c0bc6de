// Package yamlline finds the line of a field in a YAML 1.2 document, for messages about settings.
package yamlline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Of returns the line, from 1, of the field at a path such as webhooks.rules[0].name. A field that is not
// there has the line of the innermost one around it. It returns 0 for a document that is no YAML,
// and for a path of which nothing is there.
func Of(document []byte, path string) int {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil || len(root.Content) == 0 {
		return 0
	}
	line, node := 0, root.Content[0]
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		key, value := child(node, name)
		if value == nil {
			break
		}
		line, node = key.Line, value
	}
	return line
}

// child returns a member of an object or of a list with the node that has its line.
func child(of *yaml.Node, name string) (key, value *yaml.Node) {
	if of.Kind == yaml.SequenceNode {
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || i >= len(of.Content) {
			return nil, nil
		}
		return of.Content[i], of.Content[i]
	}
	if of.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(of.Content); i += 2 {
		if of.Content[i].Value == name {
			return of.Content[i], of.Content[i+1]
		}
	}
	return nil, nil
}

// Readable returns an error about the syntax of YAML without the names of the parsers in it.
func Readable(err error) error {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(text, "yaml: ")
	var lines []string
	for line := range strings.Lines(strings.TrimPrefix(text, "unmarshal errors:\n")) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return errors.New(strings.Join(lines, "; "))
}

// Locate puts the line of the field that each error begins with before the error.
func Locate(text []byte, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, one := range joined.Unwrap() {
			errs = append(errs, Locate(text, one))
		}
		return errors.Join(errs...)
	}
	path, _, _ := strings.Cut(err.Error(), " ")
	if line := Of(text, strings.TrimSuffix(path, ":")); line > 0 {
		return fmt.Errorf("line %d: %w", line, err)
	}
	return err
}
