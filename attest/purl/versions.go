package purl

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/google/osv-scalibr/semantic"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// ecosystemOf returns OSV's name for the ecosystem of a package type. It runs for every version: a map would be made
// each time.
func ecosystemOf(kind string) string {
	for _, pair := range [...][2]string{
		{"apk", "Alpine"}, {"bitnami", "Bitnami"}, {"cargo", "crates.io"}, {"composer", "Packagist"}, {"conan", "ConanCenter"}, {"cran", "CRAN"},
		{"deb", "Debian"}, {"gem", "RubyGems"}, {"golang", "Go"}, {"hackage", "Hackage"}, {"hex", "Hex"}, {"julia", "Julia"}, {"maven", "Maven"},
		{"npm", "npm"}, {"nuget", "NuGet"}, {"pub", "Pub"}, {"pypi", "PyPI"}, {"rpm", "Red Hat"}, {"semver", "npm"}, {"swift", "SwiftURL"},
	} {
		if pair[0] == kind {
			return pair[1]
		}
	}
	return ""
}

// TypeOf returns the package type of an ecosystem of OSV, which may have a release, as in Debian:12;
// empty if it is not known.
func TypeOf(ecosystem string) string {
	name, _, _ := strings.Cut(ecosystem, ":")
	return map[string]string{
		"AlmaLinux": "rpm", "Alpine": "apk", "Bitnami": "bitnami", "CRAN": "cran", "Chainguard": "apk", "ConanCenter": "conan", "Debian": "deb",
		"Go": "golang", "Hackage": "hackage", "Hex": "hex", "Julia": "julia", "Maven": "maven", "NuGet": "nuget", "Packagist": "composer", "Pub": "pub",
		"PyPI": "pypi", "Red Hat": "rpm", "Rocky Linux": "rpm", "RubyGems": "gem", "SUSE": "rpm", "SwiftURL": "swift", "Ubuntu": "deb",
		"Wolfi": "apk", "crates.io": "cargo", "npm": "npm", "openEuler": "rpm", "openSUSE": "rpm",
	}[name]
}

// Compare orders two versions of a package type: negative, zero or positive.
func Compare(kind, a, b string) (int, error) {
	parsed, err := parseVersion(kind, a)
	if err != nil {
		return 0, err
	}
	return parsed.compare(kind, b)
}

// ordered is a version that others are compared with.
type ordered struct{ semantic.Version }

func parseVersion(kind, version string) (ordered, error) {
	if err := checkVersion(version); err != nil {
		return ordered{}, err
	}
	ecosystem := ecosystemOf(kind)
	if ecosystem == "" {
		return ordered{}, fmt.Errorf("package type %q: %w", limit.Text(kind, 100), errNoOrder)
	}
	parsed, err := semantic.Parse(version, ecosystem)
	if err != nil {
		return ordered{}, fmt.Errorf("version %q of %s: %w", version, kind, err)
	}
	return ordered{parsed}, nil
}

func checkVersion(version string) error {
	switch {
	case len(version) > MaxVersion:
		return &limit.ExceededError{What: "the version", Most: MaxVersion}
	case version == "" || strings.ContainsFunc(version, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return fmt.Errorf("%q is not a version", limit.Text(version, 100))
	}
	return nil
}

// compare orders the version relative to another one.
func (o ordered) compare(kind, other string) (int, error) {
	if err := checkVersion(other); err != nil {
		return 0, err
	}
	order, err := o.CompareStr(other)
	if err != nil {
		return 0, fmt.Errorf("version %q of %s: %w", other, kind, err)
	}
	return order, nil
}

// MaxConstraints bounds the constraints of one range.
const MaxConstraints = 256

// Range is a version range specifier (VERS). The zero value contains nothing.
type Range struct {
	kind        string
	all         bool
	constraints []constraint
	text        string
	unreadable  error
}

// Unreadable returns the range of a text that is none: whether it contains a version is not known.
func Unreadable(text string, why error) *Range { return &Range{text: text, unreadable: why} }

type constraint struct {
	comparator, version string
	parsed              ordered
}

// String returns the range as it was written.
func (r *Range) String() string { return r.text }

// ParseRange parses a range, as in vers:npm/>=1.0.0|<2.0.0. A range without the scheme vers is one of
// the package type kind, as in >=1.0.0|<2.0.0. The constraints must be in the order of their versions,
// or in one that can be put in order; each version may be there once.
func ParseRange(text, kind string) (*Range, error) {
	if len(text) > MaxLength {
		return nil, &limit.ExceededError{What: "the version range", Most: MaxLength}
	}
	r := &Range{kind: kind, text: text}
	list := text
	if rest, ok := strings.CutPrefix(text, "vers:"); ok {
		var scheme string
		scheme, list, ok = strings.Cut(rest, "/")
		if !ok || scheme == "" {
			return nil, fmt.Errorf("version range %q: want vers:TYPE/CONSTRAINTS", text)
		}
		if kind != "" && scheme != kind {
			return nil, fmt.Errorf("version range %q is of %s, not of %s", text, scheme, kind)
		}
		r.kind = scheme
	}
	if strings.TrimSpace(list) == "*" {
		r.all = true
		return r, nil
	}
	for part := range strings.SplitSeq(list, "|") {
		one, err := parseConstraint(r.kind, strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("version range %q: %w", text, err)
		}
		r.constraints = append(r.constraints, one)
		if len(r.constraints) > MaxConstraints {
			return nil, fmt.Errorf("version range: more than %d constraints (MaxConstraints)", MaxConstraints)
		}
	}
	return r, r.sort()
}

func parseConstraint(kind, text string) (constraint, error) {
	one := constraint{comparator: "=", version: text}
	for _, comparator := range []string{"!=", "<=", ">=", "<", ">", "="} {
		if rest, ok := strings.CutPrefix(text, comparator); ok {
			one = constraint{comparator: comparator, version: strings.TrimSpace(rest)}
			break
		}
	}
	version, err := url.PathUnescape(one.version)
	if err != nil {
		return one, fmt.Errorf("version %q: %w", one.version, err)
	}
	one.version = version
	if version == "" || version == "*" {
		return one, errors.New("a constraint has no version")
	}
	one.parsed, err = parseVersion(kind, version)
	return one, err
}

// sort puts the constraints in the order of their versions, and refuses two of one version.
func (r *Range) sort() error {
	var failed error
	compare := func(a, b constraint) int {
		order, err := a.parsed.compare(r.kind, b.version)
		failed = errors.Join(failed, err)
		return order
	}
	slices.SortStableFunc(r.constraints, compare)
	for i := 1; i < len(r.constraints) && failed == nil; i++ {
		if compare(r.constraints[i-1], r.constraints[i]) == 0 {
			return fmt.Errorf("version range %q: version %s is there twice", r.text, r.constraints[i].version)
		}
	}
	if failed != nil {
		return fmt.Errorf("version range %q: %w", r.text, failed)
	}
	return nil
}

// Contains reports whether a version is in the range.
func (r *Range) Contains(version string) (bool, error) {
	if r.all || r.unreadable != nil {
		return r.all, r.unreadable
	}
	orders := make([]int, len(r.constraints)) // of the version, relative to that of the constraint
	for i, c := range r.constraints {
		order, err := c.parsed.compare(r.kind, version)
		if err != nil {
			return false, err
		}
		order = -order
		if order == 0 {
			return c.comparator != "!=" && c.comparator != "<" && c.comparator != ">", nil
		}
		orders[i] = order
	}
	return r.between(orders), nil
}

// between decides about a version that equals none of the constraints': as specified, constraints
// are pairs of a lower and an upper bound, and one of each may be open.
func (r *Range) between(orders []int) bool {
	var bounds []int
	for i, c := range r.constraints {
		if c.comparator[0] == '<' || c.comparator[0] == '>' {
			bounds = append(bounds, i)
		}
	}
	for n, i := range bounds {
		lower := r.constraints[i].comparator[0] == '>'
		switch {
		case !lower && n == 0 && orders[i] < 0:
			return true
		case lower && orders[i] > 0 && (n == len(bounds)-1 || r.constraints[bounds[n+1]].comparator[0] == '<' && orders[bounds[n+1]] < 0):
			return true
		}
	}
	if len(bounds) > 0 {
		return false
	}
	return len(r.constraints) > 0 && !slices.ContainsFunc(r.constraints, func(c constraint) bool { return c.comparator == "=" })
}
