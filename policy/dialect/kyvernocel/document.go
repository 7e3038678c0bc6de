package kyvernocel

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// IsVersion reports whether an apiVersion is one of the dialects'.
func IsVersion(apiVersion string) bool {
	return slices.Contains([]string{"policies.kyverno.io/v1", "policies.kyverno.io/v1beta1", "policies.kyverno.io/v1alpha1"}, apiVersion)
}

// IsKind reports whether a document is of one of the kinds, or of its namespaced form with the
// prefix Namespaced.
func IsKind(apiVersion, kind string, kinds ...string) bool {
	return IsVersion(apiVersion) && slices.Contains(kinds, strings.TrimPrefix(kind, "Namespaced"))
}

// Unsupported is the error for a field that would have no effect here, contrary to its author's
// intent.
func Unsupported(path, what string) error {
	return field.Fail(path, "%s is not supported in this version, and without it the document would mean something else: remove it or keep the document in Kyverno", what)
}

// Head holds the common fields of all documents.
type Head struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
}

// Metadata is not decoded strictly: the API server adds to it.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]any    `json:"labels"`
	Created     time.Time         `json:"creationTimestamp"` // zero outside of a cluster
}

// ReadMetadata requires a name.
func (h *Head) ReadMetadata() (Metadata, error) {
	var meta Metadata
	if err := json.Unmarshal(h.Metadata, &meta); err != nil {
		return meta, field.Fail("metadata", "%w", field.Readable(err))
	}
	if meta.Name == "" {
		return meta, field.Fail("metadata.name", "is empty")
	}
	return meta, nil
}

// NamespaceOf returns the namespace of a policy; empty for a cluster-wide one.
func NamespaceOf(kind string, meta Metadata) string {
	switch {
	case !strings.HasPrefix(kind, "Namespaced"):
		return ""
	case meta.Namespace == "":
		return "default"
	}
	return meta.Namespace
}

// ReasonOf returns the justification of an exception, for which the dialect has no field, from its annotation.
func ReasonOf(meta Metadata) (string, error) {
	const annotation = "quaymaster.dev/reason"
	return strings.TrimSpace(meta.Annotations[annotation]), document.UnknownAnnotations(meta.Annotations, annotation)
}

// The annotations of a policy, for lists of policies.
const (
	titleAnnotation    = "policies.kyverno.io/title"
	categoryAnnotation = "policies.kyverno.io/category"
	severityAnnotation = "policies.kyverno.io/severity"
	scoredAnnotation   = "policies.kyverno.io/scored"
)

// NewPolicy creates a policy from a document's head, and data, the whole as JSON. Want is the cluster-wide kind.
func (h *Head) NewPolicy(data []byte, want, source string) (*policy.Policy, error) {
	if !IsKind(h.APIVersion, h.Kind, want) {
		return nil, fmt.Errorf("%s %s is no %s: want %s or Namespaced%s of policies.kyverno.io/v1, v1beta1 or v1alpha1", h.APIVersion, h.Kind, want, want, want)
	}
	meta, err := h.ReadMetadata()
	if err != nil {
		return nil, err
	}
	if err := document.UnknownAnnotations(meta.Annotations, policy.StaleAnnotation); err != nil {
		return nil, err
	}
	stale, err := policy.StaleFrom(meta.Annotations)
	if err != nil {
		return nil, err
	}
	return &policy.Policy{
		Settings: policy.Settings{StaleIfError: stale}, Kind: h.Kind, Name: meta.Name, Namespace: NamespaceOf(h.Kind, meta), Source: source, Hash: HashOf(data),
		Metadata: meta.Description(), Created: meta.Created,
	}, nil
}

// Description returns the author's description of a policy, from its annotations and labels.
func (m Metadata) Description() policy.Metadata {
	return policy.Metadata{
		Title: m.Annotations[titleAnnotation], Category: m.Annotations[categoryAnnotation], Severity: m.Annotations[severityAnnotation],
		Unscored: m.Annotations[scoredAnnotation] == "false", Unreported: document.IsUnreported(m.Labels),
	}
}

// HashOf names a document's content.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Confine keeps the targets of a policy of a namespace in it.
func Confine(targets []policy.Target, namespace string) []policy.Target {
	for i := range targets {
		if namespace != "" {
			targets[i].Namespaces = []string{namespace}
		}
	}
	return targets
}

// Reach is the external data that the expressions of a policy may read. Expressions of a
// namespaced policy run with the gateway's permissions, so they have no HTTP and no global
// context, as in Kyverno, and no authorizer.
func Reach(namespaced bool) cel.Options {
	return cel.Options{
		Resource: true, HTTP: !namespaced, GlobalContext: !namespaced, ImageData: true, Namespaced: namespaced, RequestObjects: true, Authorizer: !namespaced,
	}
}
