// Package native converts policies into those that an API server evaluates itself:
// ValidatingAdmissionPolicy and MutatingAdmissionPolicy with their bindings, of
// admissionregistration.k8s.io/v1 (KEP 3488 and KEP 3962), and into files that an API server loads
// before it serves (manifest-based admission control, KEP 5793).
//
// A policy is converted whole, or refused with the path of a part that the API server cannot evaluate.
// Expressions are checked in the environment that the API server of the requested version has.
package native
