package imagevalidating

import (
	"encoding/json"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// FieldError says what is wrong with a document, and where in it.
type FieldError = field.Error

// unsupported is the error for a field that would mean nothing here, although its author
// believes that it does.
func unsupported(path, what string) error {
	return field.Fail(path, "%s is not supported in this version, and without it the document would mean something else: remove it or keep the document in Kyverno", what)
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
		return meta, field.Fail("metadata", "%w", field.Readable(err))
	}
	return meta, nil
}

// annotations of a policy, for lists of policies.
const (
	titleAnnotation    = "policies.kyverno.io/title"
	categoryAnnotation = "policies.kyverno.io/category"
	severityAnnotation = "policies.kyverno.io/severity"
)
