package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/document"
)

// The annotation by which a policy comes into force untried.
const (
	Annotation = document.GuardAnnotation
	Accepted   = "accepted"
)

// Version is a policy with one content.
type Version struct {
	// ID is the policy's (policy.Policy.ID).
	ID string
	// Hash identifies the part of the document that determines the policy's behaviour.
	Hash string
	// Enforcing: the policy denies.
	Enforcing bool
	// Accepted: the policy's annotation accepts this version.
	Accepted bool
	// Created is when the API server made the object; zero where none did.
	Created time.Time
	// Text is the document as JSON, without the API server's own fields.
	Text []byte
}

// Read returns a document's version. It refuses anything but a JSON or YAML object.
func Read(p *policy.Policy, text []byte) (Version, error) {
	if p == nil {
		return Version{}, errors.New("rollout: want a policy")
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil { // JSON is YAML, too
		return Version{}, fmt.Errorf("rollout: %s: %w", p.ID(), err)
	}
	if document == nil {
		return Version{}, fmt.Errorf("rollout: %s: the document is no object", p.ID())
	}
	delete(document, "status")
	metadata, _ := document["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	accepted := annotations[Annotation] == Accepted
	written, _ := metadata["creationTimestamp"].(string)
	created, _ := time.Parse(time.RFC3339, written) // zero if invalid
	delete(annotations, lastApplied)
	for key := range metadata {
		if key != "name" && key != "namespace" && key != "labels" && key != "annotations" {
			delete(metadata, key)
		}
	}
	kept, err := json.Marshal(document)
	if err != nil {
		return Version{}, fmt.Errorf("rollout: %s: %w", p.ID(), err)
	}
	// Neither labels nor the acceptance are part of a policy's behaviour.
	delete(metadata, "labels")
	annotations = maps.Clone(annotations)
	if annotations != nil {
		delete(annotations, Annotation)
		delete(metadata, "annotations")
		if len(annotations) > 0 {
			metadata["annotations"] = annotations
		}
	}
	said, err := json.Marshal(document)
	if err != nil {
		return Version{}, fmt.Errorf("rollout: %s: %w", p.ID(), err)
	}
	sum := sha256.Sum256(said)
	return Version{ID: p.ID(), Hash: hex.EncodeToString(sum[:]), Enforcing: Enforces(p), Accepted: accepted, Created: created, Text: kept}, nil
}

// lastApplied is the annotation in which kubectl keeps a copy of the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Enforces reports whether a policy may deny. Rules that change or make objects deny
// nothing.
func Enforces(p *policy.Policy) bool {
	return !p.AuditOnly && (len(p.Rules)+len(p.Validations) > 0 || p.Broken != nil)
}
