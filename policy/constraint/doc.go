// Package constraint decides whether a policy's matchConstraints match an object.
//
// They are those of Kubernetes' ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1,
// MatchResources, Kubernetes 1.37), which Kyverno's policies.kyverno.io share: rules by group,
// version, resource, name, operation and scope, rules that exclude, and selectors of namespaces
// and objects.
//
// The result has three values: match, no match, and indeterminate, if it depends on unknown
// fields of the object or of its namespace.
package constraint
