package manifests

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/signedmanifest/difference"
)

// checkIgnored refuses ignoreFields that leave nothing to be signed, and those of too many patterns.
func checkIgnored(list []ignoredFields, path string) error {
	var errs []error
	count := 0
	for i, one := range list {
		place := fmt.Sprintf("%s[%d]", path, i)
		if len(one.Fields) == 0 {
			errs = append(errs, field.Fail(place+".fields", "is empty, and so would ignore nothing"))
		}
		for n, pattern := range one.Fields {
			if err := difference.CheckField(pattern); err != nil {
				errs = append(errs, field.Fail(fmt.Sprintf("%s.fields[%d]", place, n), "%q %w", pattern, err))
			}
		}
		count += len(one.Fields)
	}
	if count > difference.MaxPatterns {
		errs = append(errs, field.Fail(path, "has %d fields, more than %d", count, difference.MaxPatterns))
	}
	return errors.Join(errs...)
}

// ignoredFor returns the ignored fields of an object.
func ignoredFor(list []ignoredFields, of objectReference) difference.Fields {
	var out difference.Fields
	for _, one := range list {
		if len(one.Objects) == 0 || slices.ContainsFunc(one.Objects, func(r objectReference) bool { return r.matches(of) }) {
			out = append(out, one.Fields...)
		}
	}
	return out
}

func (r objectReference) matches(of objectReference) bool {
	return matches(r.Group, of.Group) && matches(r.Version, of.Version) && matches(r.Kind, of.Kind) &&
		matches(r.Name, of.Name) && matches(r.Namespace, of.Namespace)
}

// matches compares as k8s-manifest-sigstore does: nothing and * are any value, - is none, a pattern may
// end in *, and alternatives are separated by commas.
func matches(patterns, value string) bool {
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern = strings.TrimSpace(pattern)
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		switch {
		case pattern == "" && strings.TrimSpace(patterns) == "", pattern == value && value != "", pattern == "-" && value == "":
			return true
		case isPrefix && strings.HasPrefix(value, prefix):
			return true
		}
	}
	return false
}
