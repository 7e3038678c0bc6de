package attest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/in-toto/in-toto-golang/in_toto"

	"github.com/quaymaster/quaymaster/image"
)

// PredicateCosignSign is the predicate type of cosign 3's signing statement, which replaces a
// simple signing payload.
const PredicateCosignSign = "https://sigstore.dev/cosign/sign/v1"

// Statement is an in-toto statement, v0.1 or v1: subjects, and a predicate
// about them.
type Statement struct {
	// Type is the statement's own type URI.
	Type          string          `json:"_type"`
	Subjects      []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// Subject is one subject of a statement.
type Subject struct {
	Name        string            `json:"name,omitempty"`
	Digest      map[string]string `json:"digest"`
	Annotations map[string]any    `json:"annotations,omitempty"`
}

// ParseStatement parses an in-toto statement of v0.1 or v1. It requires the type, one to
// MaxSubjects subjects with a digest each, a predicate type, and JSON that every parser reads
// alike (no repeated key). It ignores unknown fields, as the specification requires.
func ParseStatement(b []byte) (Statement, error) {
	if len(b) > MaxAttestation {
		return Statement{}, overBound("in-toto statement", "MaxAttestation", MaxAttestation)
	}
	if err := CheckJSON(b); err != nil {
		return Statement{}, fmt.Errorf("in-toto statement: %w", err)
	}
	s, err := readStatement(b)
	if err != nil {
		return Statement{}, fmt.Errorf("in-toto statement: %w", err)
	}
	return s, nil
}

func readStatement(b []byte) (Statement, error) {
	members, err := fields(b, "_type", "subject", "predicateType", "predicate")
	if err != nil {
		return Statement{}, err
	}
	for _, names := range [][2]string{{"predicate_type", "predicateType"}, {"type", "_type"}} { // protobuf's first
		if _, has := members[names[0]]; has {
			return Statement{}, fmt.Errorf("it has %q, which some parsers take for %q", names[0], names[1])
		}
	}
	s := Statement{Predicate: members["predicate"]}
	subjects, err := elements(members, "subject", MaxSubjects)
	if err := errors.Join(
		err,
		decode(members, "_type", &s.Type),
		decode(members, "predicateType", &s.PredicateType),
	); err != nil {
		return Statement{}, err
	}
	switch {
	case s.Type != in_toto.StatementInTotoV01 && s.Type != in_toto.StatementInTotoV1:
		return Statement{}, fmt.Errorf("type %q is neither %s nor %s", shorten(s.Type), in_toto.StatementInTotoV01, in_toto.StatementInTotoV1)
	case s.PredicateType == "":
		return Statement{}, errors.New("it has no predicateType")
	case len(subjects) == 0:
		return Statement{}, errors.New("it has no subject")
	case len(subjects) > MaxSubjects:
		return Statement{}, overBound("subjects", "MaxSubjects", MaxSubjects)
	}
	for i, raw := range subjects {
		subject, err := readSubject(raw)
		if err != nil {
			return Statement{}, fmt.Errorf("subject %d: %w", i+1, err)
		}
		s.Subjects = append(s.Subjects, subject)
	}
	return s, nil
}

func readSubject(raw json.RawMessage) (Subject, error) {
	if len(raw) > maxSubject {
		return Subject{}, overBound("bytes of a subject", "maxSubject", maxSubject)
	}
	members, err := fields(raw, "name", "digest", "annotations")
	if err != nil {
		return Subject{}, err
	}
	var s Subject
	if err := errors.Join(
		decode(members, "name", &s.Name),
		decode(members, "digest", &s.Digest),
		decode(members, "annotations", &s.Annotations),
	); err != nil {
		return Subject{}, err
	}
	if len(s.Digest) == 0 {
		return Subject{}, errors.New("it has no digest")
	}
	for algorithm, value := range s.Digest {
		if algorithm == "" || value == "" {
			return Subject{}, errors.New("its digest has an empty algorithm or value")
		}
	}
	return s, nil
}

// Covers reports whether the statement is about d: one of its subjects has d's own algorithm with
// exactly d's value, in lower-case hexadecimal. The name of a subject is not considered.
func (s Statement) Covers(d image.Digest) bool {
	return !d.IsZero() && slices.ContainsFunc(s.Subjects, func(subject Subject) bool {
		return subject.Digest[d.Algorithm()] == d.Hex()
	})
}
