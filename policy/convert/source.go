package convert

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// source is one document, as JSON.
type source struct {
	APIVersion, Kind string
	// prefix stands before paths where a file has several documents.
	prefix string
	text   []byte
	fields map[string]json.RawMessage
}

// split reads the documents of a file of YAML or JSON. Keys that are there twice
// are an error.
func split(data []byte) ([]source, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("the policy is no text in UTF-8")
	}
	var documents []source
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		chunk, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read document %d: %w", len(documents)+1, err)
		}
		text, err := yaml.YAMLToJSONStrict(chunk)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(documents)+1, err)
		}
		if string(text) == "null" {
			continue
		}
		if len(documents) == maxDocuments {
			return nil, fmt.Errorf("the file has more than %d documents: convert it in parts", maxDocuments)
		}
		d := source{text: text}
		if err := json.Unmarshal(text, &d.fields); err != nil {
			return nil, fmt.Errorf("document %d is no object: a policy was expected", len(documents)+1)
		}
		_ = json.Unmarshal(d.fields["apiVersion"], &d.APIVersion) // what is no text stays empty
		_ = json.Unmarshal(d.fields["kind"], &d.Kind)
		documents = append(documents, d)
	}
	if len(documents) == 0 {
		return nil, errors.New("the file holds no policy")
	}
	for i := range documents {
		if len(documents) > 1 {
			documents[i].prefix = fmt.Sprintf("document %d: ", i+1)
		}
	}
	return documents, nil
}

func (s source) has(field string) bool { return s.fields[field] != nil }

// at returns a path in the document.
func (s source) at(path string) string { return s.prefix + path }

// decode reads JSON into a struct; an unknown field, one in another case and one
// of another type are refused with their path.
func (c *conversion) decode(text []byte, into any, path string) bool {
	strict, err := kjson.UnmarshalStrict(text, into)
	if err != nil {
		field, why := readable(err)
		c.refuse(below(path, field), why, "mend the document")
		return false
	}
	for _, problem := range strict {
		what, field, ok := strings.Cut(problem.Error(), ` "`)
		if !ok {
			c.refuse(path, problem.Error(), "mend the document")
			continue
		}
		c.refuse(below(path, strings.TrimSuffix(field, `"`)), what, "it is not known what it asks for: remove it, or keep the policy where it is")
	}
	return len(strict) == 0
}

// readable takes the field and the Go types out of a message of encoding/json.
func readable(err error) (field, why string) {
	m := regexp.MustCompile(`cannot unmarshal (\S+) into Go (?:struct field [^.\s]+\.(\S+)|value) of type (\S+)`).FindStringSubmatch(err.Error())
	if m == nil {
		return "", err.Error()
	}
	wanted := "an object"
	switch of := strings.TrimLeft(m[3], "*"); {
	case strings.HasPrefix(of, "[]"):
		wanted = "a list"
	case of == "bool":
		wanted = "true or false"
	case strings.Contains(of, "int"):
		wanted = "a whole number"
	case of == "string":
		wanted = "a text"
	}
	return m[2], "want " + wanted + ", found " + m[1]
}

// below puts two paths together.
func below(path, field string) string {
	switch {
	case path == "" || strings.HasSuffix(path, ": "):
		return path + field
	case field == "" || field[0] == '[':
		return path + field
	}
	return path + "." + field
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// file reads a file that the policy names.
func (c *conversion) file(name, at string) ([]byte, bool) {
	if c.options.Files == nil {
		c.refuse(at, fmt.Sprintf("names the file %s", name), "give --root with the folder that it lies in, / for this machine's own")
		return nil, false
	}
	inside := strings.TrimPrefix(path.Clean("/"+name), "/")
	data, err := readFile(c.options.Files, inside)
	if err != nil {
		c.refuse(at, fmt.Sprintf("names the file %s, which cannot be read: %v", name, err), "mend --root or the path")
		return nil, false
	}
	return data, true
}

func readFile(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return limit.ReadAll(f, maxFile, name)
}
