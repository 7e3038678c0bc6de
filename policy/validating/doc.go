// Package validating answers: may an object be as it is, by a ValidatingPolicy?
//
// It compiles ValidatingPolicy and NamespacedValidatingPolicy of Kyverno's
// policies.kyverno.io (v1, v1beta1 and v1alpha1, Kyverno 1.19) into a
// policy.Validation for what the policy matches, and one for each kind of pod
// controllers that follows from pods. Expressions are CEL, by package policy/cel, compiled
// once. Every validation of a policy is asked until one does not hold: what certainly
// does not hold outweighs what could not be asked.
package validating
