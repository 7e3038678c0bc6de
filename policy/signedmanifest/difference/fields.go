package difference

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/signedmanifest"
)

// MaxPatterns is how many patterns of ignored fields one comparison takes, and MaxPattern the size of
// one in bytes.
const (
	MaxPatterns = 500
	MaxPattern  = 256
)

// Fields are patterns of fields that a comparison ignores, with everything below them. A pattern is a
// path with dots; an element of a list has its index as a name. A * matches any text within one
// name. A dot of a pattern also matches one within a name, as in
// metadata.annotations.example.com/owner.
type Fields []string

// anyName is a name that no field has; where a pattern matches it, the pattern matches every name.
const anyName = "\x01"

// CheckField refuses a pattern that leaves nothing of a part of an object by which it is identified, or
// for which it is signed.
func CheckField(pattern string) error {
	switch {
	case pattern == "" || strings.ContainsAny(pattern, "\x00\x01"):
		return errors.New("want the path of a field, as in spec.replicas")
	case len(pattern) > MaxPattern:
		return fmt.Errorf("has more than %d bytes", MaxPattern)
	}
	for _, part := range [][]string{{"apiVersion"}, {"kind"}, {"metadata"}, {"metadata", "name"}, {"metadata", "generateName"}, {"metadata", anyName}} {
		if covers(pattern, part) {
			return fmt.Errorf("covers %s, by which a manifest is found to be of an object", strings.ReplaceAll(strings.Join(part, "."), anyName, "*"))
		}
	}
	top, _, _ := strings.Cut(pattern, ".")
	parts := slices.Concat([][]string{{anyName}, {top}}, templates(), containers())
	for _, part := range parts {
		if slices.Contains([]string{"status", "secrets", "imagePullSecrets"}, part[0]) {
			continue
		}
		if covers(pattern, part) || covers(pattern, append(slices.Clone(part), anyName)) {
			return fmt.Errorf("covers %s whole, so that the signature would be for nothing: name the fields in it that change", strings.ReplaceAll(strings.Join(part, "."), anyName, "*"))
		}
	}
	return nil
}

// templates are the places of pod templates and of their specifications.
func templates() [][]string {
	return [][]string{
		{"template"}, {"template", "spec"}, {"spec", "template"}, {"spec", "template", "spec"}, {"spec", "jobTemplate"}, {"spec", "jobTemplate", "spec"},
		{"spec", "jobTemplate", "spec", "template"}, {"spec", "jobTemplate", "spec", "template", "spec"},
	}
}

// containers are the places of containers, and of the first of them.
func containers() [][]string {
	var out [][]string
	for _, of := range append(templates(), []string{"spec"}) {
		for _, list := range []string{"containers", "initContainers"} {
			at := append(slices.Clone(of), list)
			out = append(out, at, append(slices.Clone(at), "0"))
		}
	}
	return out
}

// ignore reports whether a field or one above it is ignored.
func (f Fields) ignore(path []string) bool {
	return slices.ContainsFunc(f, func(pattern string) bool { return covers(pattern, path) })
}

// IgnoresNamespace reports whether a manifest may be of an object in another namespace than its own.
func (f Fields) IgnoresNamespace() bool { return f.ignore([]string{"metadata", "namespace"}) }

// separator stands between the names of a path, and after the last one.
const separator = '\x00'

// covers reports whether a pattern matches a path, or one above it. The time is bounded by the product
// of the lengths.
func covers(pattern string, path []string) bool {
	text := strings.Join(path, string(separator)) + string(separator)
	// at has the positions in the text that the pattern up to here may end at.
	at := make([]bool, len(text)+1)
	at[0] = true
	for _, want := range []byte(pattern) {
		next := make([]bool, len(text)+1)
		for i := range len(text) {
			switch {
			case want == '*':
				next[i] = at[i] || i > 0 && next[i-1] && text[i-1] != separator
			case at[i] && (text[i] == want || want == '.' && text[i] == separator):
				next[i+1] = true
			}
		}
		at = next
	}
	for i := range len(text) {
		if at[i] && text[i] == separator {
			return true
		}
	}
	return false
}

// carried reports whether a path is of an annotation with the evidence.
func carried(domain signedmanifest.Domain, path []string) bool {
	return len(path) == 3 && path[0] == "metadata" && path[1] == "annotations" && domain.Has(path[2])
}
