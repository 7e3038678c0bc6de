// Package constraint answers: does a policy's matchConstraints speak of an object?
//
// They are those of Kubernetes' ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1,
// MatchResources, Kubernetes 1.36), which Kyverno's policies.kyverno.io share: rules by
// group, version, resource, name, operation and scope, rules that exclude, and selectors
// of namespaces and objects.
//
// Three answers are told apart: it matches, it does not, and nobody knows, since the
// question depends on what is not known of the object or of its namespace.
package constraint
