package rulecontext

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/policy/internal/document"
)

// CheckConditions refuses conditions that have the same result in every evaluation, as Kyverno
// does: those with a variable that nothing defines, see Undefined, those that compare the operation
// of the request with a text that is none, and those with an expression that lacks its braces.
func CheckConditions(doc any, path string, known []string) error {
	isKnown := func(name string) bool { return Reserved(name) || slices.Contains(known, name) }
	return errors.Join(Undefined(doc, path, known), document.Operations(doc, path), document.Unbraced(doc, path, isKnown))
}
