package verifytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// CosignSignPredicateType is the predicate type of cosign 3's signatures.
const CosignSignPredicateType = "https://sigstore.dev/cosign/sign/v1"

// Statement is an in-toto statement.
type Statement struct {
	// Subjects of the statement; at least one, unless NoSubjects.
	Subjects []Subject
	// NoSubjects writes an empty list of subjects.
	NoSubjects bool
	// PredicateType is a URI; CosignSignPredicateType if empty.
	PredicateType string
	// Predicate is written as JSON; an empty object if nil.
	Predicate any
	// NoPredicate omits the predicate, as cosign 2.6 does when it signs in the bundle format.
	NoPredicate bool
	// Version is "v1" (if empty) or "v0.1".
	Version string
}

// Subject is one subject of a statement.
type Subject struct {
	Name        string         // may be empty
	Digest      string         // "sha256:" and 64 hexadecimal digits, or of another algorithm
	Annotations map[string]any // v1 only; cosign 3 puts a signature's annotations here
}

// CosignSignature is the statement of a cosign 3 signature of a digest
// ("sha256:...").
func CosignSignature(digest string, annotations map[string]any) *Statement {
	return &Statement{Subjects: []Subject{{Digest: digest, Annotations: annotations}}}
}

// Attestation is a statement of any type about a digest ("sha256:...").
func Attestation(digest, predicateType string, predicate any) *Statement {
	return &Statement{Subjects: []Subject{{Digest: digest}}, PredicateType: predicateType, Predicate: predicate}
}

func (s *Statement) encode() ([]byte, error) {
	types := map[string]string{"": "v1", "v1": "v1", "v0.1": "v0.1"}
	version, ok := types[s.Version]
	if !ok {
		return nil, fmt.Errorf("statement: version %q is neither v1 nor v0.1", s.Version)
	}
	if (len(s.Subjects) == 0) != s.NoSubjects {
		return nil, errors.New("statement: set either Subjects or NoSubjects")
	}
	subjects, err := s.subjects(version)
	if err != nil {
		return nil, err
	}
	predicateType, predicate := s.PredicateType, s.Predicate
	if predicateType == "" {
		predicateType = CosignSignPredicateType
	}
	if predicate == nil {
		predicate = struct{}{}
	}
	statement := map[string]any{
		"_type":         "https://in-toto.io/Statement/" + version,
		"subject":       subjects,
		"predicateType": predicateType,
	}
	if !s.NoPredicate {
		statement["predicate"] = predicate
	}
	data, err := json.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("encode a statement: %w", err)
	}
	return data, nil
}

func (s *Statement) subjects(version string) ([]map[string]any, error) {
	subjects := []map[string]any{}
	for _, subject := range s.Subjects {
		algorithm, value, ok := strings.Cut(subject.Digest, ":")
		if !ok {
			return nil, fmt.Errorf("statement: subject digest %q has no algorithm", subject.Digest)
		}
		one := map[string]any{"digest": map[string]string{algorithm: value}}
		if subject.Name != "" || version == "v0.1" {
			one["name"] = subject.Name
		}
		if len(subject.Annotations) > 0 {
			if version == "v0.1" {
				return nil, errors.New("statement: v0.1 has no annotations of subjects")
			}
			one["annotations"] = subject.Annotations
		}
		subjects = append(subjects, one)
	}
	return subjects, nil
}
