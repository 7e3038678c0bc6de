package imagevalidating

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// FieldError says what is wrong with a document, and where in it.
type FieldError struct {
	// Path is dotted, with indices in brackets: spec.validations[0].expression.
	Path string
	Err  error
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

func fail(path, format string, args ...any) error {
	return &FieldError{Path: path, Err: fmt.Errorf(format, args...)}
}

// unsupported is the error for a field that would mean nothing here, although its author
// believes that it does.
func unsupported(path, what string) error {
	return fail(path, "%s is not supported in this version, and without it the document would mean something else: remove it or keep the document in Kyverno", what)
}

// head is what every document has.
type head struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
}

// metadata is not decoded strictly: the API server adds to it.
type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
}

func readMetadata(raw json.RawMessage) (metadata, error) {
	var meta metadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		return meta, fail("metadata", "%w", readable(err))
	}
	return meta, nil
}

// read decodes a document strictly, and returns it as JSON. Fields that are unknown,
// there twice or different in case are errors with their path.
func read(text []byte, into any) ([]byte, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("the document of %d bytes exceeds the bound of %d", len(text), maxDocument)
	}
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return data, readable(err)
	}
	var errs []error
	for _, problem := range strict {
		errs = append(errs, fieldProblem(problem.Error()))
	}
	return data, errors.Join(errs...)
}

// fieldProblem takes the path out of a message such as: unknown field "a.b".
func fieldProblem(message string) error {
	what, quoted, ok := strings.Cut(message, ` "`)
	if !ok {
		return errors.New(message)
	}
	return fail(strings.TrimSuffix(quoted, `"`), "%s", what)
}

// readable takes the Go types out of a message of encoding/json.
func readable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fail(wrong.Field, "want %s, found %s", wanted(wrong.Type.String()), wrong.Value)
	}
	return err
}

func wanted(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.Contains(goType, "int"):
		return "a whole number"
	case strings.HasSuffix(goType, "bool"):
		return "true or false"
	case strings.HasSuffix(goType, "string"), strings.HasSuffix(goType, "Type"), strings.HasSuffix(goType, "Action"):
		return "a string"
	}
	return "an object"
}

// annotations of a policy, for lists of policies.
const (
	titleAnnotation    = "policies.kyverno.io/title"
	categoryAnnotation = "policies.kyverno.io/category"
	severityAnnotation = "policies.kyverno.io/severity"
)
