package kyvernocel

import (
	"errors"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// FieldCheck checks the object fields that expressions read.
type FieldCheck struct {
	Finder *schema.Finder
	// Unqualified: a rule may name a kind without its group, which is * then.
	Unqualified bool
	// EveryGroup: the policy matches resources of every group that has some of their names.
	EveryGroup bool
}

// EveryGroup reports whether a rule of a match names every group.
func EveryGroup(match *admission.MatchResources) bool {
	return match != nil && slices.ContainsFunc(match.ResourceRules, func(r admission.NamedRuleWithOperations) bool {
		return slices.Contains(r.APIGroups, "*")
	})
}

// Check refuses expressions that read a field which no kind that the policy matches has, or compare
// values that are never equal. Where a kind may have fields that are not known here, as a custom kind
// or another version of a built-in one, it returns a warning instead. Nil programs are passed over.
func (c FieldCheck) Check(targets []policy.Target, programs ...*cel.Program) ([]string, error) {
	var kinds []schema.Kind
	for _, t := range targets {
		kinds = append(kinds, schema.Kind{Group: t.Group, Version: t.Version, Kind: t.Kind, Subresource: t.Subresource, Named: !c.Unqualified})
	}
	known := c.Finder.Of(kinds)
	var errs, certain []error
	for _, p := range programs {
		if p != nil {
			errs = append(errs, p.Undefined([]string{ObjectName, OldObjectName}, known.Schemas))
			certain = append(certain, p.CheckOperation())
		}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if known.Exact && !c.EveryGroup {
		return nil, errors.Join(append(errs, certain...)...)
	}
	var warnings []string
	for _, err := range errs {
		warnings = append(warnings, err.Error()+", as far as their fields are known")
	}
	return warnings, errors.Join(certain...)
}

// Note is Check, with the warnings added to the policy.
func (c FieldCheck) Note(out *policy.Policy, targets []policy.Target, programs ...*cel.Program) error {
	warnings, err := c.Check(targets, programs...)
	out.Warnings = append(out.Warnings, warnings...)
	return err
}
