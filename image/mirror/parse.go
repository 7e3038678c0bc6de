package mirror

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/util/validation"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/internal/yamlline"
)

// Bounds, so that a document cannot make each admission slow. They are far above real documents.
const (
	// MaxDocument is in bytes; the API server takes 3 MiB of JSON.
	MaxDocument = 3 << 20
	// MaxEntries of one document and of a set.
	MaxEntries  = 10_000
	maxSources  = 256 // of an entry
	maxTargets  = 16  // of an entry; each may cost a request
	maxEvidence = 16  // of an entry; each may cost a request
	maxSecrets  = 16  // of an entry
)

// ErrNoMapping means that a ConfigMap has no registry among its keys, and serves another purpose.
var ErrNoMapping = errors.New("none of the keys is a registry")

// envelope holds the common fields of all documents.
type envelope struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
	Data       json.RawMessage `json:"data"`
	Immutable  bool            `json:"immutable"`
	Status     json.RawMessage `json:"status"`
}

// Parse compiles one document, in YAML or JSON. An error names the path of the invalid part, and
// is ErrNoMapping for a ConfigMap with another purpose.
func Parse(text []byte, source string) (*Document, error) {
	d, err := parse(text, source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return d, nil
}

// ParseFile compiles the documents of a YAML stream. It skips a ConfigMap with another purpose; a
// file without any mapping is an error.
func ParseFile(text []byte, source string) ([]*Document, error) {
	var documents []*Document
	reader := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for i := 1; ; i++ {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: YAML: %w", source, err)
		}
		if isEmpty(part) {
			continue
		}
		d, err := parse(part, source)
		switch {
		case errors.Is(err, ErrNoMapping):
		case err != nil:
			return nil, fmt.Errorf("%s: document %d: %w", source, i, err)
		default:
			documents = append(documents, d)
		}
	}
	if len(documents) == 0 {
		return nil, fmt.Errorf("%s: %w", source,
			errors.New("there is no mapping in it: want a RegistryMirror, an ImageDigestMirrorSet, an ImageTagMirrorSet or a ConfigMap of registries"))
	}
	return documents, nil
}

// isEmpty reports whether a part of a stream has only comments.
func isEmpty(part []byte) bool {
	for line := range bytes.Lines(part) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && string(line) != "---" {
			return false
		}
	}
	return true
}

func parse(text []byte, source string) (*Document, error) {
	if len(text) > MaxDocument {
		return nil, fmt.Errorf("it has more than %d bytes", MaxDocument)
	}
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("YAML: %w", yamlline.Readable(err))
	}
	var e envelope
	if err := decode(raw, &e, ""); err != nil {
		return nil, err
	}
	read, body := e.reader()
	if read == nil {
		return nil, fmt.Errorf("kind: %s of %q is not known: want RegistryMirror of %s, ImageDigestMirrorSet or ImageTagMirrorSet of %s, ImageContentSourcePolicy of %s, or ConfigMap of v1",
			e.Kind, e.APIVersion, ownVersion, configVersion, operatorVersion)
	}
	d := &Document{Kind: e.Kind, Source: source}
	d.Name, err = e.name()
	if err != nil {
		return nil, err
	}
	if len(body) == 0 || string(body) == "null" {
		return nil, errors.New("there is nothing in it: want spec, or data in a ConfigMap")
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\x00%s\x00%s\x00%s", e.APIVersion, d.Kind, d.Name, body)
	d.Hash = hex.EncodeToString(sum.Sum(nil))
	specs, err := read(d, body)
	if err != nil {
		return nil, err
	}
	return d, d.compile(specs)
}

// reader returns the parser for the document, and the part to parse.
func (e envelope) reader() (func(*Document, []byte) ([]entrySpec, error), []byte) {
	switch e.APIVersion + " " + e.Kind {
	case ownVersion + " RegistryMirror":
		return readOwn, e.spec()
	case configVersion + " ImageDigestMirrorSet":
		return readDigestMirrors, e.spec()
	case configVersion + " ImageTagMirrorSet":
		return readTagMirrors, e.spec()
	case operatorVersion + " ImageContentSourcePolicy":
		return readContentSources, e.spec()
	case "v1 ConfigMap":
		return readPairs, e.Data
	}
	return nil, nil
}

// spec is empty if there is data too, which only a ConfigMap has.
func (e envelope) spec() []byte {
	if len(e.Data) > 0 {
		return nil
	}
	return e.Spec
}

// name returns the document's name; the other fields of metadata are ignored.
func (e envelope) name() (string, error) {
	var metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	}
	if len(e.Metadata) > 0 {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(e.Metadata, &metadata); err != nil {
			return "", fmt.Errorf("metadata: %w", strictjson.Readable(err))
		}
	}
	if problems := validation.IsDNS1123Subdomain(metadata.Name); len(problems) > 0 {
		return "", fmt.Errorf("metadata.name: %s", problems[0])
	}
	switch {
	case e.Kind != "ConfigMap" && metadata.Namespace != "":
		return "", fmt.Errorf("metadata.namespace: a %s is in no namespace", e.Kind)
	case metadata.Namespace == "":
		return metadata.Name, nil
	}
	if problems := validation.IsDNS1123Label(metadata.Namespace); len(problems) > 0 {
		return "", fmt.Errorf("metadata.namespace: %s", problems[0])
	}
	return metadata.Namespace + "/" + metadata.Name, nil
}

// decode decodes JSON into a struct. Unknown and repeated fields are errors with their path.
func decode(data []byte, into any, path string) error {
	problems, err := strictjson.Decode(data, into)
	if problem, ok := errors.AsType[*strictjson.Problem](err); ok {
		return fmt.Errorf("%s: %s", below(path, problem.Path), problem.What)
	}
	if err != nil {
		return at(path, err)
	}
	var errs []error
	for _, problem := range problems {
		errs = append(errs, fmt.Errorf("%s: %s", below(path, problem.Path), problem.What))
	}
	return errors.Join(errs...)
}

func at(path string, err error) error {
	if path == "" {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func below(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}
