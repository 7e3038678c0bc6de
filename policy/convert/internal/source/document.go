package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/workload"
)

// Document is one document, as JSON.
type Document struct {
	APIVersion, Kind string
	// Prefix precedes paths where a file has several documents.
	Prefix string
	// Text is the whole document.
	Text []byte
	// YAML is the document as it was written; empty if it was JSON, or part of a list.
	YAML   string
	fields map[string]json.RawMessage
}

// Split parses the documents of a file of YAML or JSON. A key that is set twice is an error; a
// YAML merge may be overridden.
func Split(data []byte) ([]Document, error) {
	objects, err := workload.ReadDocuments(bytes.NewReader(data), "the policy")
	if err != nil {
		return nil, err
	}
	if len(objects) > maxDocuments {
		return nil, fmt.Errorf("the file has more than %d documents: convert it in parts", maxDocuments)
	}
	documents, err := Documents(objects)
	for i := range documents {
		documents[i].Prefix = ""
		if len(objects) > 1 {
			documents[i].Prefix = fmt.Sprintf("document %d: ", i+1)
		}
	}
	return documents, err
}

// Documents returns objects as documents, each with its source as the Prefix.
func Documents(objects []workload.Object) ([]Document, error) {
	documents := make([]Document, len(objects))
	for i, o := range objects {
		d := &documents[i]
		var err error
		d.Text, err = json.Marshal(o.Content())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Source(), err)
		}
		if err := json.Unmarshal(d.Text, &d.fields); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Source(), err)
		}
		_ = json.Unmarshal(d.fields["apiVersion"], &d.APIVersion) // a value of another type stays empty
		_ = json.Unmarshal(d.fields["kind"], &d.Kind)
		d.Prefix, d.YAML = o.Source()+": ", o.YAML()
	}
	return documents, nil
}

// Has reports whether the document has a field at its top.
func (s Document) Has(field string) bool { return s.fields[field] != nil }

// At returns a path in the document.
func (s Document) At(path string) string { return s.Prefix + path }

// Decode reads JSON into a struct; an unknown field, one in another case and one
// of another type are refused with their path.
func (c *Conversion) Decode(text []byte, into any, path string) bool {
	problems, err := strictjson.Decode(text, into)
	if err != nil {
		c.unreadable(path, err)
		return false
	}
	for _, problem := range problems {
		c.Refuse(Below(path, problem.Path), problem.What, "its meaning is unknown: remove it, or keep the policy where it is")
	}
	return len(problems) == 0
}

// unreadable refuses a part that has another type than its field.
func (c *Conversion) unreadable(path string, err error) {
	problem, ok := errors.AsType[*strictjson.Problem](strictjson.Readable(err))
	if !ok {
		problem = &strictjson.Problem{What: err.Error()}
	}
	c.Refuse(Below(path, problem.Path), problem.What, "mend the document")
}

// Below puts two paths together.
func Below(path, field string) string {
	switch {
	case path == "" || strings.HasSuffix(path, ": "):
		return path + field
	case field == "" || field[0] == '[':
		return path + field
	}
	return path + "." + field
}

// Index is the path of an entry of a list.
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// File reads a file that the policy names.
func (c *Conversion) File(name, at string) ([]byte, bool) {
	if c.Files == nil {
		c.Refuse(at, fmt.Sprintf("names the file %s", name), "give --root with the folder that it lies in, / for this machine's own")
		return nil, false
	}
	inside := strings.TrimPrefix(path.Clean("/"+name), "/")
	data, err := ReadFile(c.Files, inside)
	if err != nil {
		c.Refuse(at, fmt.Sprintf("names the file %s, which cannot be read: %v", name, err), "mend --root or the path")
		return nil, false
	}
	return data, true
}

// ReadFile reads a file of a folder that was handed in, up to 1 MiB.
func ReadFile(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return limit.ReadAll(f, maxFile, name)
}
