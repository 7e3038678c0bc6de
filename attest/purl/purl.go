// Package purl compares package URLs (ECMA-427) and versions: a pattern with a version range (VERS, as
// in vers:npm/>=1.0.0|<2.0.0) matches the packages of an inventory or a scan. Versions are ordered as
// each ecosystem orders them, by github.com/google/osv-scalibr/semantic.
package purl

import (
	"errors"
	"fmt"
	"strings"

	packageurl "github.com/package-url/packageurl-go"

	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// MaxLength bounds a package URL, in bytes; the longest known have some 500.
	MaxLength = 4 << 10
	// MaxVersion bounds a version that is ordered, in bytes: versions are compared as numbers of any size.
	MaxVersion = 256
	// maxQualifiers bounds the qualifiers: known types have some five.
	maxQualifiers = 32
)

// URL is a parsed and normalised package URL. The zero value is none.
type URL struct {
	Type, Namespace, Name string
	// Version has the epoch of a Debian or RPM package in front, as in 1:2.0-1, also where it was a
	// qualifier. Empty: every version, in a pattern.
	Version string
	// Qualifiers are those except epoch and vers.
	Qualifiers map[string]string
	Subpath    string
	// Range is the qualifier vers; nil for none.
	Range *Range
	text  string
}

// String returns the URL as it was written.
func (u URL) String() string { return u.text }

// IsZero reports whether there is no URL.
func (u URL) IsZero() bool { return u.Type == "" }

// Parse parses a package URL and normalises it as its type requires. With the error about a version range,
// it returns the URL with a range of unknown versions.
func Parse(text string) (URL, error) {
	if len(text) > MaxLength {
		return URL{}, &limit.ExceededError{What: "the package URL", Most: MaxLength}
	}
	parsed, err := packageurl.FromString(text)
	if err != nil {
		return URL{}, fmt.Errorf("package URL %q: %w", limit.Text(text, 200), err)
	}
	if len(parsed.Qualifiers) > maxQualifiers {
		return URL{}, fmt.Errorf("package URL %q: more than %d qualifiers", limit.Text(text, 200), maxQualifiers)
	}
	var failed error
	u := URL{Type: parsed.Type, Namespace: parsed.Namespace, Name: parsed.Name, Version: parsed.Version, Subpath: parsed.Subpath, text: text}
	for _, q := range parsed.Qualifiers {
		switch {
		case q.Key == "epoch" && (u.Type == "deb" || u.Type == "rpm"):
			if u.Version != "" && !strings.Contains(u.Version, ":") && q.Value != "0" {
				u.Version = q.Value + ":" + u.Version
			}
		case q.Key == "vers":
			within, err := ParseRange(q.Value, u.Type)
			if err == nil && u.Version != "" {
				err = errors.New("it has a version and a version range")
			}
			if err != nil {
				failed = fmt.Errorf("package URL %q: %w", limit.Text(text, 200), err)
				within = Unreadable(q.Value, failed)
			}
			u.Range = within
		default:
			if u.Qualifiers == nil {
				u.Qualifiers = map[string]string{}
			}
			u.Qualifiers[q.Key] = q.Value
		}
	}
	u.Version = strings.TrimPrefix(u.Version, "0:")
	return u, failed
}

// Pattern parses a package URL for Matches, with a version range of its own, as in >=1.0.0|<2.0.0, if it has none.
func Pattern(text string, ranges ...string) (URL, error) {
	u, err := Parse(text)
	if err != nil {
		return URL{}, err
	}
	for _, within := range ranges {
		if u.Version != "" || u.Range != nil {
			return URL{}, fmt.Errorf("package URL %q: it has a version, and a version range is given", limit.Text(text, 200))
		}
		u.Range, err = ParseRange(within, u.Type)
		if err != nil {
			return URL{}, fmt.Errorf("package URL %q: %w", limit.Text(text, 200), err)
		}
	}
	return u, nil
}

// Matches reports whether the pattern u means a package: type, namespace and name are equal, and so are
// the version, every qualifier and the subpath that the pattern has. A pattern with a range means the
// versions in it; one with neither means every version. It fails if a version is missing or cannot be ordered.
func (u URL) Matches(other URL) (bool, error) {
	if u.IsZero() || u.Type != other.Type || u.Namespace != other.Namespace || u.Name != other.Name {
		return false, nil
	}
	if u.Subpath != "" && u.Subpath != other.Subpath {
		return false, nil
	}
	for key, value := range u.Qualifiers {
		if other.Qualifiers[key] != value {
			return false, nil
		}
	}
	switch {
	case u.Range == nil && (u.Version == "" || u.Version == other.Version):
		return true, nil
	case other.Version == "":
		return false, fmt.Errorf("package URL %s has no version to compare with %s", limit.Text(other.text, 200), limit.Text(u.text, 200))
	case u.Range == nil:
		return false, nil
	}
	return u.Range.Contains(other.Version)
}

// Write writes the package URL of a name as ecosystems have it: with a namespace before the last slash,
// or before a colon in Maven's.
func Write(kind, name, version string) string {
	namespace := ""
	separator := "/"
	if kind == "maven" {
		separator = ":"
	}
	if i := strings.LastIndex(name, separator); i >= 0 {
		namespace, name = name[:i], name[i+1:]
	}
	return packageurl.NewPackageURL(kind, namespace, name, version, nil, "").ToString()
}

// errNoOrder means that versions of a package type have no known order.
var errNoOrder = errors.New("the order of its versions is not known")
