package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// UnconvertedError reports that a rule names other versions of a resource than the one of
// the object. The API server converts an object to a version that the webhook rules name;
// without a conversion the fields that the rule reads may be absent or mean something else,
// and so the rule cannot be evaluated, whatever it would return.
type UnconvertedError struct {
	Kind, Version string
	Named         []string
}

// Error implements error.
func (e *UnconvertedError) Error() string {
	return fmt.Sprintf("the rule selects version %s of %s, and the object is in version %s, which is not converted here: write the object in version %s",
		strings.Join(e.Named, ", "), e.Kind, e.Version, strings.Join(e.Named, " or "))
}

// Prevails marks the error as the cause that counts among several, see logic.Prefer.
func (*UnconvertedError) Prevails() bool { return true }

// IsUnconverted reports whether a selection is indeterminate because of a version.
func IsUnconverted(err error) bool {
	_, is := errors.AsType[*UnconvertedError](err)
	return is
}

// Served lists the kinds of the resources that the API server serves.
type Served interface {
	KindOf(group, version, resource string) (kind string, known bool)
}

// Unconverted returns why a rule that names versions of the subject's resource, patterns
// allowed, and not the subject's own, cannot be evaluated; nil if the API server serves
// none of the named versions, so that the rule means no object.
func (s *Subject) Unconverted(named []string) error {
	if !slices.ContainsFunc(named, s.mayBeServed) {
		return nil
	}
	version := s.Version
	if s.IsBody() {
		of, _ := s.Resource()
		version = of.Version
	}
	return &UnconvertedError{Kind: s.Kind, Version: version, Named: named}
}

// mayBeServed reports whether the subject's resource may be served in a version.
func (s *Subject) mayBeServed(version string) bool {
	if s.Served != nil && !wildcard.Contains(version) {
		of, named := s.Resource()
		if _, known := s.Served.KindOf(of.Group, of.Version, of.Name); named && known {
			_, served := s.Served.KindOf(of.Group, version, of.Name)
			return served
		}
	}
	versions, known := builtin.VersionsOf(s.Group, s.Kind)
	return !known || slices.ContainsFunc(versions, func(v string) bool { return wildcard.Match(version, v) })
}
