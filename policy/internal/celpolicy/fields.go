package celpolicy

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/cel"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
)

// CheckFields refuses expressions that read a field which no kind that the policy matches
// has. Where the schema of one kind is not known, as of a custom resource, a subresource of
// another kind or a pattern, nothing is refused.
func CheckFields(finder *schema.Finder, targets []policy.Target, programs ...*cel.Program) error {
	var kinds []schema.Kind
	for _, t := range targets {
		if t.Unserved {
			return nil
		}
		kinds = append(kinds, schema.Kind{Group: t.Group, Version: t.Version, Kind: t.Kind, Subresource: t.Subresource})
	}
	schemas, known := finder.Join(kinds)
	if !known {
		return nil
	}
	var errs []error
	for _, p := range programs {
		if p != nil {
			errs = append(errs, p.CheckFields([]string{ObjectName, OldObjectName}, schemas))
		}
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}
