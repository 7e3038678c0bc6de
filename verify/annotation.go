package verify

import (
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

// MissingAnnotation decides whether the signed annotations include all wanted ones, with exactly
// these values. It returns nil, or the first missing annotation in alphabetical order, without
// its origin.
func MissingAnnotation(wanted, signed map[string]string) *Rejection {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		value, ok := signed[name]
		if ok && value == wanted[name] {
			continue
		}
		reject := &Rejection{Code: WrongAnnotation, Expected: name + "=" + Visible(wanted[name])}
		if ok {
			reject.Found = name + "=" + Visible(value)
		}
		return reject
	}
	return nil
}

// SubjectAnnotations returns the annotations of the subject with the digest, where cosign puts a
// signature's. Only string values count; cosign writes nothing else.
func SubjectAnnotations(statement attest.Statement, digest image.Digest) map[string]string {
	var kept map[string]string
	for _, subject := range statement.Subjects {
		if subject.Digest[digest.Algorithm()] != digest.Hex() {
			continue
		}
		for name, value := range subject.Annotations {
			text, ok := value.(string)
			if !ok {
				continue
			}
			if kept == nil {
				kept = make(map[string]string)
			}
			kept[name] = text
		}
	}
	return kept
}
