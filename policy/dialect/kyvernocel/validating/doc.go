// Package validating compiles ValidatingPolicies.
//
// It compiles ValidatingPolicy and NamespacedValidatingPolicy of Kyverno's policies.kyverno.io
// (v1, v1beta1 and v1alpha1, Kyverno 1.19) into a policy.Validation for the objects that the
// policy matches, and one for each kind of pod controllers in its generated rules. Expressions
// are CEL, by package policy/lang/cel, compiled once. The validations of a policy are evaluated until
// one does not hold: a certain failure outweighs an error.
package validating
