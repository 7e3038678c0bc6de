// Package set holds the policies, exceptions and overrides of one moment, and finds the rules that
// apply to a subject.
//
// A Set is immutable. Plan returns the checks of the image rules; Mutate, Validate, Generate and
// Alterations evaluate the object rules. Exceptions apply as in Kyverno (PolicyException,
// kyverno.io/v2 and policies.kyverno.io/v1).
package set
