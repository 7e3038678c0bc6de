package field

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/internal/yamlline"
)

const (
	// MaxDocument bounds a document; the API server accepts 3 MiB of JSON.
	MaxDocument = 3 << 20
	// maxBlocks bounds the PEM blocks in one text; each key is an authority.
	maxBlocks = 100
)

// The types of PEM blocks.
const (
	PublicKey   = "PUBLIC KEY"
	Certificate = "CERTIFICATE"
)

// Error is a fault of a document with its path.
type Error struct {
	// Path is dotted, with indices in brackets: spec.authorities[0].key.data.
	Path string
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Err.Error()
	}
	return e.Path + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Fail makes an Error of a message.
func Fail(path, format string, args ...any) error {
	return &Error{Path: path, Err: fmt.Errorf(format, args...)}
}

// Below puts the path of a field before an error.
func Below(path string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Path: path, Err: err}
}

// Read decodes a document strictly, and returns it as JSON. Fields that are
// unknown, there twice or different in case are errors with their path.
func Read(text []byte, into any) ([]byte, error) { return ReadUpTo(MaxDocument, text, into) }

// ReadUpTo is Read with another bound, in bytes.
func ReadUpTo(most int, text []byte, into any) ([]byte, error) {
	if len(text) > most {
		return nil, fmt.Errorf("the document of %d bytes exceeds the bound of %d", len(text), most)
	}
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("YAML: %w", yamlline.Readable(err))
	}
	problems, err := strictjson.Decode(data, into)
	if err != nil {
		return data, Readable(err)
	}
	var errs []error
	for _, problem := range problems {
		errs = append(errs, Fail(problem.Path, "%s", problem.What))
	}
	return data, errors.Join(errs...)
}

// RefuseNull refuses fields of spec that are written without a value: left out, they would
// confine nothing.
func RefuseNull(document []byte, names ...string) error {
	var d struct {
		Spec map[string]json.RawMessage
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if string(d.Spec[name]) == "null" {
			errs = append(errs, Fail("spec."+name, "is null: write a value, or leave the field out"))
		}
	}
	return errors.Join(errs...)
}

// Readable removes the Go types from a message about JSON; other errors stay.
func Readable(err error) error {
	if problem, ok := errors.AsType[*strictjson.Problem](strictjson.Readable(err)); ok {
		return Fail(problem.Path, "%s", problem.What)
	}
	return err
}

// ReadName returns the name in metadata. It ignores other fields: the API server may have more of
// them than this version.
func ReadName(raw json.RawMessage) (string, error) {
	var meta struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return "", Fail("metadata", "%w", Readable(err))
	}
	if meta.Name == "" {
		return "", Fail("metadata.name", "is empty")
	}
	return meta.Name, nil
}

// URL requires the address of a service.
func URL(text, path string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return Fail(path, "%q: want https://host[/path]", text)
	}
	return nil
}

// PEM splits PEM into its blocks, all of one type. A block that is broken
// is an error and not passed over: it may be a signer. Between certificates
// there may be text, as OpenSSL writes it; between keys there may not.
func PEM(text, path, kind string) ([]string, error) {
	var blocks []string
	wanted := strings.Count(text, "-----BEGIN ")
	for rest := []byte(text); ; {
		left := strings.TrimSpace(string(rest))
		if kind == PublicKey && left != "" && !strings.HasPrefix(left, "-----BEGIN ") {
			return nil, Fail(path, "want PEM blocks of type %s and nothing else, found %q", kind, Shorten(left))
		}
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if block.Type != kind {
			return nil, Fail(path, "a PEM block is of type %q: want %s", block.Type, kind)
		}
		blocks = append(blocks, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: block.Bytes})))
		rest = after
	}
	switch {
	case wanted == 0:
		return nil, Fail(path, "want a PEM block of type %s, found %q", kind, Shorten(text))
	case len(blocks) != wanted:
		return nil, Fail(path, "%d of %d PEM blocks are broken", wanted-len(blocks), wanted)
	case len(blocks) > maxBlocks:
		return nil, Fail(path, "%d PEM blocks are more than %d", len(blocks), maxBlocks)
	}
	return blocks, nil
}

// Shorten cuts a text for a message.
func Shorten(s string) string {
	const most = 60
	return limit.Text(s, most)
}
